import { Things } from "@tapedeck/proto/tapedeck/v1/look";
import { Target } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import {
  basis,
  box,
  framesOf,
  playThings,
  project,
  runner,
  target,
} from "./thing-play.ts";

const shop = { project: [project("p1")], basis: [basis("b1")], box: [box("x1")], runner: [runner("r1")] };

describe("the first look of all", () => {
  it("describes every kind in the upstream's order, and tells nothing else", () => {
    const desk = playThings();
    expect(desk.look(1_000, { target: [target("w2"), target("w1")], ...shop })).toBe("described");
    const [described] = framesOf(desk.record);
    expect(described?.facts[0].summary).toBe("the server has 2 targets, 1 project, 1 basis, 1 box, 1 runner");
    expect(described?.original?.type).toBe("tapedeck.v1.Things");
    const { kinds } = Things.decode(described?.original?.bytes ?? Buffer.alloc(0));
    expect(kinds.map(({ kind, same, entries }) => [kind, same, ...entries.map(({ id }) => id)])).toEqual([
      ["target", false, "w2", "w1"],
      ["project", false, "p1"],
      ["basis", false, "b1"],
      ["box", false, "x1"],
      ["runner", false, "r1"],
    ]);
    expect(Target.decode(kinds[0]?.entries[1]?.bytes ?? Buffer.alloc(0)).name).toBe("w1");
    expect(desk.look(2_000, { target: "same", box: "same" })).toBe("");
  });
});

import { expect, it } from "vitest";
import { queryClient } from "../../testing/client.ts";
import { rktHost, rktSession, uuid } from "../../testing/rkt-scenario.ts";
import { scenario } from "../../testing/scenario.ts";
import { reaches, stage } from "../../testing/stage.ts";

it("a source's current session is the last one that began or was resumed, also as of an earlier position", async () => {
  await using on = await stage();
  const script = scenario(rktHost);
  const first = rktSession("01A", script);
  first.began("/one");
  first.described("pods");
  first.prepared(uuid(1), ["web"]);
  first.ended();
  const second = rktSession("01B", script);
  second.began("/two");
  second.described("pods");
  second.ended();
  const before = script.events.length;
  script.add({ session: "01A", kind: "upstream.restored" });
  first.started(uuid(1));
  const positions = await on.write(script.events);
  await using query = await on.startQuery();
  await reaches(query, positions.at(-1) ?? 0);
  using ask = queryClient(query.address);

  const current = async (at: string) => {
    const { head, rows } = await ask.readState({ source: rktHost, collection: "rkt.pods", at });
    const { items } = await ask.listSources({ workspace: "acme", at });
    return [head?.session, rows.length, items[0]?.current_session];
  };
  expect(await current("")).toEqual(["01A", 1, "01A"]);
  expect(await current(on.at(positions[before] ?? 0))).toEqual(["01A", 1, "01A"]);
  expect(await current(on.at(positions[before - 1] ?? 0))).toEqual(["01B", 0, "01B"]);
  expect(await current(on.at(positions[3] ?? 0))).toEqual(["01A", 1, "01A"]);
});

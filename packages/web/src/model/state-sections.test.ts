import { expect, it } from "vitest";
import { stateSections } from "./state-sections.ts";

const job = (state: string, command?: string, ...args: readonly string[]) => ({
  id: "1",
  state,
  ...(command === undefined ? { init: {} } : { command: { command, cli_args: { args } } }),
});

it("a Vagrant server's state has its machines, and its newest commands once each, the newest first", () => {
  const sections = stateSections("vagrant", {
    targets: [{ name: "web1", state: "CREATED", record: { state: { short_description: "running" } } }],
    jobs: [
      job("SUCCESS"),
      job("ERROR", "up"),
      job("SUCCESS", "destroy"),
      job("SUCCESS", "up"),
      job("ERROR", "provision", "web1"),
      job("RUNNING", "halt", "web1"),
    ],
  });
  expect(sections).toEqual([
    { title: "Machines", rows: [{ name: "web1", value: "running", tone: "good" }] },
    {
      title: "Commands",
      rows: [
        { name: "halt web1", value: "running", tone: "running" },
        { name: "provision web1", value: "failed", tone: "bad" },
        { name: "up", value: "succeeded", tone: "good" },
        { name: "destroy", value: "succeeded", tone: "good" },
      ],
    },
  ]);
});

it("no more than five commands are shown", () => {
  const jobs = Array.from({ length: 9 }, (_, n) => job("SUCCESS", "up", `web${n}`));
  const [commands] = stateSections("vagrant", { jobs });
  expect(commands?.rows.map(({ name }) => name)).toEqual(["up web8", "up web7", "up web6", "up web5", "up web4"]);
});

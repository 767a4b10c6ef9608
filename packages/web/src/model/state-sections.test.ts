import { expect, it } from "vitest";
import { stateSections } from "./state-sections.ts";

const job = (state: string, command?: string, ...args: readonly string[]) => ({
  id: "1",
  state,
  ...(command === undefined ? { init: {} } : { command: { command, cli_args: { args } } }),
  ...(command !== undefined && state === "SUCCESS" && { result: { run: { run_result: true } } }),
});

it.each([
  [{ result: { run: { run_result: true } } }, "succeeded", "good"],
  [{ result: { run: { run_error: { code: 2, message: "no such box" } } } }, "failed", "bad"],
  [{ result: { run: { exit_code: 127 } } }, "failed", "bad"],
  [{ result: { run: {} } }, "failed", "bad"],
  [{ result: { run: {} }, cancel_time: "2026-11-29T06:17:02Z" }, "canceled", "quiet"],
  [{ result: {} }, "end unknown", "quiet"],
])("a Vagrant command ended as the result of its run says, whatever its job's state: %j", (ended, value, tone) => {
  const [commands] = stateSections("vagrant", { jobs: [{ ...job("SUCCESS", "up"), ...ended }] });
  expect(commands?.rows).toEqual([{ name: "up", value, tone }]);
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

import { expect, it } from "vitest";
import { settingsReader } from "../../service/settings.ts";
import { logSettings, logSettingsOf } from "./log-settings.ts";

const read = (logs: unknown) => {
  const reader = settingsReader({ env: { TAPEDECK_NATS_LOGS: JSON.stringify(logs) } });
  const found = logSettings(reader);
  reader.assertValid();
  return found;
};

it("the first entry that names a workspace says what its log has, and the others have the common settings", () => {
  const logs = read([
    { workspaces: ["team-a"], replicas: 1 },
    { workspaces: ["team-*", "globex"], maxBytes: 2_000_000, placement: ["ssd"] },
  ]);
  const of = (workspace: string) => logSettingsOf({ logs, replicas: 3 }, workspace);
  expect(of("team-a")).toEqual({ replicas: 1, placement: [], maxBytes: undefined });
  expect(of("team-b")).toEqual({ replicas: 3, placement: ["ssd"], maxBytes: 2_000_000 });
  expect(of("globex")).toEqual(of("team-b"));
  expect(of("team")).toEqual({ replicas: 3, placement: [], maxBytes: undefined });
  expect(logSettingsOf({}, "team-a")).toEqual({ replicas: 1, placement: [], maxBytes: undefined });
});

it.each([
  [{ workspaces: ["team-a"] }, /expected a list of logs, such as/],
  [[{ maxBytes: 2_000_000 }], /nats\.logs|TAPEDECK_NATS_LOGS\.0\.workspaces/],
  [[{ workspaces: ["Team A"] }], /0\.workspaces\.0: "Team A" is no workspace and no pattern of some/],
  [[{ workspaces: ["team-a"], maxBytes: "50GB" }], /0\.maxBytes/],
  [[{ workspaces: ["team-a"], maxBytes: 1_000 }], /0\.maxBytes/],
  [[{ workspaces: ["team-a"], replicas: 9 }], /0\.replicas/],
  [[{ workspaces: ["team-a"], place: ["ssd"] }], /place/],
])("logs that are wrong are refused with where and why: %j", (logs, reason) => {
  expect(() => read(logs)).toThrow(reason);
});

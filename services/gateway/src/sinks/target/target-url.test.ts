import { expect, it } from "vitest";
import { shownTarget, targetError } from "./target-url.ts";

it.each([
  ["not a URL", /not a URL/],
  ["ftp://example.com/", /neither https nor http/],
  ["file:///etc/passwd", /neither https nor http/],
  ["https://user:secret@example.com/", /user or a password/],
  ["https://example.com/#part", /fragment/],
  ["http://example.com/", /without TLS/],
  ["https://127.0.0.1/", /not a public address/],
  ["https://127.1/", /not a public address/],
  ["https://0x7f.1/", /not a public address/],
  ["https://2130706433/", /not a public address/],
  ["https://[::1]/", /not a public address/],
  ["https://[::ffff:10.0.0.1]/", /not a public address/],
  ["https://localhost/", /not a public address/],
  ["https://hooks.localhost./", /not a public address/],
  ["https://169.254.169.254/latest/meta-data/", /not a public address/],
])("refuses the target %s", (target, message) => {
  expect(targetError(target, [])).toMatch(message);
});

it("takes what the operator's settings name, by host or by host and port", () => {
  expect(targetError("https://hooks.example/a?b=c", [])).toBeUndefined();
  expect(targetError("http://127.0.0.1:9000/", ["127.0.0.1"])).toBeUndefined();
  expect(targetError("http://127.0.0.1:9000/", ["127.0.0.1:9000"])).toBeUndefined();
  expect(targetError("http://127.0.0.1:9001/", ["127.0.0.1:9000"])).toMatch(/without TLS/);
  expect(targetError("http://receiver/", ["Receiver:80"])).toBeUndefined();
  expect(targetError("http://[fd00::1]:80/", ["[fd00::1]:80"])).toBeUndefined();
  expect(targetError("http://receiver.example/", ["receiver"])).toMatch(/without TLS/);
});

it.each([
  ["http://127.0.0.1:18099/hook", '["127.0.0.1:18099"]'],
  ["https://localhost/", '["localhost:443"]'],
  ["http://[fd00::1]/", '["[fd00::1]:80"]'],
])("says what to write to allow %s", (target, hosts) => {
  expect(targetError(target, [])).toContain(`: add gateway: { sinkHosts: ${hosts} } to tapedeck.yaml, and restart`);
  expect(targetError(target, JSON.parse(hosts))).toBeUndefined();
});

it("shows the origin of a target alone", () => {
  expect(shownTarget("https://hooks.example/services/T0/B0/secret?token=1")).toBe("https://hooks.example/…");
  expect(shownTarget("https://hooks.example:8443")).toBe("https://hooks.example:8443");
});

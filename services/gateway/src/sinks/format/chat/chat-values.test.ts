import { expect, it } from "vitest";
import type { ChatMessage } from "./chat-state.ts";
import { chatValues, durationText, mrkdwn, plainText } from "./chat-values.ts";
import { filled, templateError } from "./template.ts";

const message: ChatMessage = {
  id: "32bl00-gcj869",
  type: "failed",
  at: 0,
  source: "default/alice/shop/skaffold",
  what: "loop 7",
  error: "exit status 1",
  operation: { session: "s", kind: "loop", runner: 1, loop: 7 },
  path: "/loops/s.1.7",
  more: 0,
};
const page = "https://tapedeck.example";
const cause = { what: "build web", text: "undefined: total", place: "main.go:7" };

it("a failure in Slack says what, for whom, the cause and the link", () => {
  expect(chatValues(message, cause, page, mrkdwn).text).toBe(
    ":red_circle: *alice/shop*: build web failed\nundefined: total · main.go:7\n<https://tapedeck.example/loops/s.1.7|why>",
  );
  expect(chatValues({ ...message, more: 3 }, undefined, page, mrkdwn).text).toBe(
    ":red_circle: *alice/shop*: loop 7 failed, and 3 more failures\nexit status 1; see its output\n<https://tapedeck.example/loops/s.1.7|why>",
  );
  const good = { ...message, type: "good", error: "", redMs: 720_000, more: 1 } as const;
  expect(chatValues(good, undefined, page, mrkdwn).text).toBe(
    ":large_green_circle: *alice/shop*: good again after 12 min; 1 more failure meanwhile\n<https://tapedeck.example/loops/s.1.7|loop 7>",
  );
});

it("a cause names its place once, whether or not its text begins with it", () => {
  const causeOf = (text: string, place: string) =>
    chatValues(message, { what: "build web", text, place }, page, plainText).cause;
  expect(causeOf("./main.go:10:64: undefined: total", "./main.go:10")).toBe("./main.go:10:64: undefined: total");
  expect(causeOf("./main.go:10:64: undefined: total", "main.go:10")).toBe("./main.go:10:64: undefined: total");
  expect(causeOf("main.go:10: undefined: total", "main.go:1")).toBe("main.go:10: undefined: total · main.go:1");
  expect(causeOf("undefined: total", "main.go:10")).toBe("undefined: total · main.go:10");
});

it("an error that is a long command is shown by the line below it that says why", () => {
  const command = `copying files: running [kubectl exec web-${"0".repeat(200)}]`;
  const error = `${command}\n - stdout: ""\n - stderr: "error: unable to upgrade connection\\n"\n - cause: exit status 1`;
  const { cause } = chatValues({ ...message, error }, undefined, page, plainText);
  expect(cause).toBe("error: unable to upgrade connection");
});

it("an error that says only that something failed points to the output, with the exit code if it has one", () => {
  const causeOf = (error: string) => chatValues({ ...message, error }, undefined, page, plainText).cause;
  const vagrant =
    "The SSH command responded with a non-zero exit status. Vagrant\nassumes that this means the command failed.";
  for (const error of ["", vagrant]) expect(causeOf(error)).toBe("the tool gave no reason; see its output");
  expect(causeOf("kubectl apply: exit status 1")).toBe("kubectl apply: exit status 1; see its output");
  const ofApp = { what: "", text: "batch: exited with 7", place: "" };
  expect(chatValues(message, ofApp, page, plainText).cause).toBe("batch: exited with 7; see its output");
  expect(causeOf("no space left on device")).toBe("no space left on device");
});

it("a text of an upstream pings nobody, links nowhere and breaks no line of a message", () => {
  const hostile = "<!channel> <@U1> @here @all & <https://evil.example|ok>\n\u001b[31m*x*\u0007\u202e\r\n:bomb:";
  const { text } = chatValues(message, { what: hostile, text: hostile, place: hostile }, page, mrkdwn);
  expect(text.split("\n")).toHaveLength(3);
  expect(text).toContain(
    "&lt;!channel&gt; &lt;@\u2060U1&gt; @\u2060here @\u2060all &amp; &lt;https://evil.example|ok&gt;",
  );
  expect(text.match(/<[^>]*>/g)).toEqual(["<https://tapedeck.example/loops/s.1.7|why>"]);
  expect(text).not.toMatch(/@(?!\u2060)|\p{Cc}(?<!\n)|\u202e/u);
  const other = chatValues({ ...message, type: "good", what: hostile }, undefined, page, mrkdwn);
  expect(other.text.match(/<[^>]*>/g)).toHaveLength(1);
  expect(chatValues(message, { ...cause, text: "@everyone" }, page, plainText).text).toContain("@\u2060everyone");
});

it("a text in the Markdown of Mattermost hides no address behind another text, and loads no image", () => {
  const text = "[ok](https://evil.example) ![](https://evil.example/seen.png)";
  const { cause: shown } = chatValues(message, { ...cause, text, place: "src/__init__.py:3" }, page, mrkdwn);
  expect(shown).toBe("[ok]\u2060(https://evil.example) ![]\u2060(https://evil.example/seen.png) · src/__init__.py:3");
});

it("a message is short whatever an upstream has printed", () => {
  const long = { what: "😀".repeat(9_000), text: "&".repeat(9_000), place: "x".repeat(9_000) };
  for (const dialect of [mrkdwn, plainText]) {
    const { text } = chatValues({ ...message, what: long.what, error: long.text }, long, page, dialect);
    expect(text.length).toBeLessThan(dialect === mrkdwn ? 4_000 : 2_000);
    expect(text.isWellFormed()).toBe(true);
  }
});

it("a template stays the JSON that it is, whatever the values are", () => {
  const template = {
    embeds: [{ title: "{{ title }}", url: "{{link}}", color: 15, fields: ["{{cause}} {{cause}}"] }],
    '{{text}}"': null,
    allowed_mentions: { parse: [] },
  };
  const cause = '","x":"$& $1 {{link}} \\ \u2028 "}]';
  const values = { ...chatValues(message, undefined, page, plainText), cause };
  expect(JSON.parse(filled(template, values))).toEqual({
    embeds: [
      {
        title: "alice/shop: loop 7 failed",
        url: "https://tapedeck.example/loops/s.1.7",
        color: 15,
        fields: [`${cause} ${cause}`],
      },
    ],
    '{{text}}"': null,
    allowed_mentions: { parse: [] },
  });
});

it("a template with a placeholder that has no end is read soon", () => {
  const began = performance.now();
  expect(templateError({ content: `{{ text }} {{${" ".repeat(3_000)}` })).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(2_000);
});

it("a template with an unknown placeholder, one in a key, without a text, or too large is refused", () => {
  expect(templateError({ content: "{{text}}" })).toBeUndefined();
  expect(templateError({ content: "{{txt}}" })).toMatch(/has \{\{txt\}\}: there are \{\{text\}\}/);
  expect(templateError({ content: "{{constructor}} {{text}}" })).toMatch(/constructor/);
  expect(templateError({ content: "failed" })).toMatch(/neither/);
  const inKey = { content: "{{text}}", fields: [{ "of {{project}}": "x" }] };
  expect(templateError(inKey)).toBe('has the key "of {{project}}": placeholders are replaced in values alone');
  expect(templateError({ content: `{{text}}${"x".repeat(9_000)}` })).toMatch(/characters/);
  const deep = (depth: number): object => (depth === 0 ? { text: "{{text}}" } : { deep: deep(depth - 1) });
  expect(templateError(deep(100) as Readonly<Record<string, unknown>>)).toMatch(/deep/);
});

it.each([
  [45_000, "45 s"],
  [720_000, "12 min"],
  [3_600_000, "1 h"],
  [11_100_000, "3 h 5 min"],
  [2 * 86_400_000 + 4 * 3_600_000, "2 d 4 h"],
])("%d ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

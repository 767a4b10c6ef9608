import { explain, saysNothing } from "@tapedeck/explain";
import { terminalText } from "@tapedeck/shared/output/terminal-text";
import type { ChatMessage } from "./chat-state.ts";
import type { ChatValues } from "./template.ts";

/** Why something failed: the step that failed first, and the line that says why. */
export type ChatCause = { readonly what: string; readonly text: string; readonly place: string };

/** How a chat writes texts. */
export type Dialect = {
  /** Makes the text of an upstream harmless: nothing in it is a mention, or a link that hides where it leads. */
  readonly plain: (text: string) => string;
  readonly bold: (text: string) => string;
  readonly link: (url: string, text: string) => string;
  readonly signs: Readonly<Record<ChatMessage["type"], string>>;
};

/**
 * Slack's mrkdwn, which Mattermost and Rocket.Chat read, too. These also know mentions without markup, and links and images of Markdown.
 * Asterisks, underscores and backticks stay: Slack has no escape for them, and a path must be right when it is copied.
 */
export const mrkdwn: Dialect = {
  plain: (text) =>
    withoutNamedLinks(withoutMentions(text)).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  bold: (text) => `*${text}*`,
  link: (url, text) => `<${url.replace(/[<>|]/g, encodeURIComponent)}|${text}>`,
  signs: { failed: ":red_circle:", good: ":large_green_circle:" },
};

/** A text that any chat shows as it is. */
export const plainText: Dialect = {
  plain: withoutMentions,
  bold: (text) => text,
  link: (url) => url,
  signs: { failed: "🔴", good: "🟢" },
};

const maxTitle = 200;
const maxCause = 500;

/** What a message says. Slack shows up to 4,000 characters as one message, Discord takes 2,000. */
export function chatValues(
  message: ChatMessage,
  cause: ChatCause | undefined,
  page: string,
  { plain, bold, link, signs }: Dialect,
): ChatValues {
  const { type, source, what, error, more, redMs } = message;
  const [, developer = "", project = "", upstream = ""] = source.split("/");
  const name = upstream === "skaffold" ? `${developer}/${project}` : `${developer}/${project}/${upstream}`;
  const shown = (text: string, max: number) => plain(cut(oneLine(text), max));
  const failedStep = shown(cause?.what || what, maxTitle);
  const duration = redMs === undefined ? "" : durationText(redMs);
  const reason = reasonOf(cause, error);
  const why =
    type === "failed" ? [shown(reason.text, maxCause), shown(reason.place, maxTitle)].filter(Boolean).join(" · ") : "";
  const who = shown(name, maxTitle);
  const state = type === "failed" ? `${failedStep} failed` : `good again${duration === "" ? "" : ` after ${duration}`}`;
  const others = more === 0 ? "" : othersText(type, more);
  const url = `${page}${message.path}`;
  const first = [`${signs[type]} ${bold(who)}: ${state}`, others]
    .filter((part) => part !== "")
    .join(type === "failed" ? ", " : "; ");
  return {
    text: [first, why, link(url, type === "failed" ? "why" : shown(what, maxTitle))]
      .filter((part) => part !== "")
      .join("\n"),
    title: `${who}: ${state}`,
    cause: why,
    link: url,
    state: type,
    source: shown(source, maxTitle),
    developer: shown(developer, maxTitle),
    project: shown(project, maxTitle),
    upstream: shown(upstream, maxTitle),
    duration,
    more: others,
  };
}

/** The line that says why, and the place unless the line begins with it. */
function reasonOf(cause: ChatCause | undefined, error: string) {
  const known = cause?.text ?? "";
  const text = saysNothing(known) ? errorText(known || error) : known;
  const place = cause?.place ?? "";
  const [start, named] = [text, place].map((one) => oneLine(one).replace(/^\.\//, ""));
  const isNamed = start?.startsWith(named ?? "") === true && !/^\d/.test(start.slice(named?.length));
  return { text, place: isNamed ? "" : place };
}

/** The tool's own error. It may be a long command, with what it printed below it, or say no more than that something failed. */
function errorText(error: string): string {
  if (!saysNothing(error)) return explain({ output: "", summary: error })?.cause || error;
  const exit = error.split("\n").find((line) => /\bexit(?:ed with| status| code) \d{1,3}\b/.test(line));
  return `${exit ?? "the tool gave no reason"}; see its output`;
}

function othersText(type: ChatMessage["type"], more: number): string {
  const failures = `${more} more ${more === 1 ? "failure" : "failures"}`;
  return type === "failed" ? `and ${failures}` : `${failures} meanwhile`;
}

/** "@channel", "@here" and "@name" ping nobody with an invisible character in them. */
function withoutMentions(text: string): string {
  return text.replace(/@(?=\S)/g, "@\u2060");
}

/** "[text](address)" is no link, and with "!" before it no image, with an invisible character in it. */
function withoutNamedLinks(text: string): string {
  return text.replaceAll("](", "]\u2060(");
}

function oneLine(text: string): string {
  return terminalText(text.replaceAll("\r", "\n")).replace(/\s+/g, " ").trim();
}

function cut(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}

/** "45 s", "12 min", "3 h 5 min", "2 d 4 h" */
export function durationText(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (ms < 60_000) return `${Math.round(ms / 1_000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

import { ulid } from "ulid";
import type { Format, FormattedSink } from "../format.ts";
import { ChatPass } from "./chat-pass.ts";
import { chatKinds } from "./chat-state.ts";
import { type Dialect, mrkdwn, plainText } from "./chat-values.ts";
import { type ChatTemplate, type ChatValues, filled, placeholders } from "./template.ts";

/** A link in the output of a tool must make Slack fetch nothing. */
const slackTemplate: ChatTemplate = { text: "{{text}}", unfurl_links: false, unfurl_media: false };

function chatFormat(dialect: Dialect, preset: ChatTemplate): Format {
  const templateOf = ({ template }: FormattedSink) => template ?? preset;
  return {
    kinds: () => chatKinds,
    isTestSeen: true,

    open: (sink, reader, opening) => new ChatPass({ sink, template: templateOf(sink), dialect, reader, ...opening }),

    test(at, sink) {
      const id = `test_${ulid(at.getTime())}`;
      const text = `A test of the sink ${sink.name} of Tapedeck: nothing has failed.`;
      const values = Object.fromEntries(placeholders.map((name) => [name, ""])) as ChatValues;
      return {
        id,
        body: filled(templateOf(sink), { ...values, text, title: text, link: sink.page, state: "test" }),
        headers: { "content-type": "application/json; charset=UTF-8", "tapedeck-message": id },
        covers: 0,
      };
    },
  };
}

/** Slack, and what takes the same: Mattermost, Rocket.Chat. */
export const slack: Format = chatFormat(mrkdwn, slackTemplate);

/** Any chat that takes JSON, by a template of its own. */
export const chat: Format = chatFormat(plainText, { text: "{{text}}" });

import { expect, it } from "vitest";
import { kinds } from "../events/kinds.ts";
import { sourceName } from "../source.ts";
import { subjectMatches } from "./subject-match.ts";
import {
  channelFilter,
  channelsOf,
  eventSubject,
  everySubject,
  messageFilters,
  messageSubject,
  sourceFilter,
} from "./subjects.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const place = "tapedeck.v2.acme.alice.shop.skaffold";

it.each([
  [[], []],
  [[everySubject], ["tapedeck.v2.>"]],
  [[sourceFilter(alice)], [`${place}.>`]],
  [[channelFilter(alice, "v1")], [`${place}.frames.*`]],
  [[channelFilter(alice, "tapedeck")], [`${place}.tapedeck.*`]],
  [[eventSubject(alice, "v1", "build.failed")], [`${place}.frames.facts`]],
  [[eventSubject(alice, "logs", "log.written")], [`${place}.frames.*`]],
  [[eventSubject(alice, "tapedeck", "session.ended")], [`${place}.tapedeck.session`]],
  [
    [`${place}.*.build`, `${place}.*.deploy`],
    [`${place}.tapedeck.build`, `${place}.frames.facts`, `${place}.tapedeck.deploy`],
  ],
])("the messages for %j are %j", (filters, expected) => {
  expect(messageFilters(filters)).toEqual(expected);
});

it.each([
  [[], undefined],
  [[everySubject], undefined],
  [[sourceFilter(alice)], undefined],
  [[channelFilter(alice, "v1"), sourceFilter(alice)], undefined],
  [[`${place}.*.build`], undefined],
  [
    [channelFilter(alice, "v1"), eventSubject(alice, "logs", "log.written")],
    ["v1", "logs"],
  ],
  [[`${place}.v1.>`], ["v1"]],
])("the channels for %j are %j", (filters, expected) => {
  expect(channelsOf(filters)).toEqual(expected && new Set(expected));
});

it("every event that a filter matches is in a message that its filters match", () => {
  for (const kind of kinds) {
    for (const channel of ["v1", "logs", "tapedeck"]) {
      const event = eventSubject(alice, channel, kind);
      const isTextKind = kind === "log.written" || kind === "terminal.written";
      for (const retention of isTextKind ? (["facts", "text"] as const) : (["facts"] as const)) {
        const message = messageSubject(alice, channel, kind, retention);
        for (const filter of [
          event,
          event.replace(/[^.]+$/, "*"),
          event.replace(`.${channel}.`, ".*."),
          sourceFilter(alice),
        ]) {
          expect(subjectMatches(filter, event)).toBe(true);
          expect(
            messageFilters([filter]).some((one) => subjectMatches(one, message)),
            `${filter} ${message}`,
          ).toBe(true);
        }
      }
    }
  }
});

import { batchLimits } from "./batch/batch.ts";
import { fitTogether, type NewEvent } from "./log.ts";
import { isTextSubject } from "./subjects.ts";

/** Events that stay together: all facts, or all text, of one message. */
export type MessageGroup = { readonly events: readonly NewEvent[]; readonly bytes: number };

/** Events that belong together, such as those of one frame, stay in one message up to this size. */
export const largestGroup = { events: batchLimits.events, bytes: 4 * 1024 * 1024 } as const;

/**
 * Where facts and text that stays come in turns, they share messages: a message each would be much slower. With a message,
 * readers of facts read this many bytes of text at most, or so many times what the facts themselves take.
 */
const maxTextBesideFacts = { bytes: 8 * 1024, timesFacts: 2 } as const;

/** An array, or something like it. */
type GroupQueue = { at(index: number): MessageGroup | undefined };

/** The next message: the groups at the queue's head that fit together. `groups`: how many they are. */
export function nextBatch(queue: GroupQueue): MessageGroup & { readonly groups: number } {
  const events: NewEvent[] = [];
  let bytes = 0;
  let textBytes = 0;
  let groups = 0;
  for (let group = queue.at(0); group !== undefined; group = queue.at(groups)) {
    const [first] = events;
    const text = textBytes + (isTextSubject(firstOf(group).subject) ? group.bytes : 0);
    const total = bytes + group.bytes;
    const isFull = events.length + group.events.length > batchLimits.events || total > batchLimits.bytes;
    const facts = total - text;
    const hasTooMuchText =
      facts > 0 && text > Math.max(maxTextBesideFacts.bytes, facts * maxTextBesideFacts.timesFacts);
    if (first !== undefined && (isFull || hasTooMuchText || !fitTogether(first, firstOf(group)))) break;
    events.push(...group.events);
    bytes = total;
    textBytes = text;
    groups++;
  }
  return { events, bytes, groups };
}

/** What was appended together, divided where it does not fit into one message. */
export function groupsOf(appended: readonly NewEvent[]): readonly MessageGroup[] {
  const groups: { readonly events: NewEvent[]; bytes: number }[] = [];
  for (const event of appended) {
    const last = groups.at(-1);
    const bytes = event.event.byteLength;
    const isFull =
      last === undefined || last.events.length === largestGroup.events || last.bytes + bytes > largestGroup.bytes;
    if (
      isFull ||
      !fitTogether(firstOf(last), event) ||
      isTextSubject(firstOf(last).subject) !== isTextSubject(event.subject)
    )
      groups.push({ events: [event], bytes });
    else {
      last.events.push(event);
      last.bytes += bytes;
    }
  }
  return groups;
}

function firstOf({ events }: MessageGroup): NewEvent {
  return events[0] as NewEvent;
}

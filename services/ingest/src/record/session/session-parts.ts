import { largestFrameBytes } from "../../normalize/original.ts";
import { AckWatermark } from "../journal/ack-watermark.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import type { SessionRecorderOptions } from "../pushed-session.ts";
import { ChannelGaps } from "./channel-gaps.ts";
import { ChannelRecorder } from "./channel-recorder.ts";
import type { UpstreamConnection } from "./connection.ts";
import { Connections } from "./connections.ts";
import { FrameRecorder } from "./frame-recorder.ts";
import { Injections } from "./injections.ts";
import { ObservationRecorder } from "./observation-recorder.ts";
import { openSessions, type Sessions } from "./sessions.ts";
import { UpstreamStates } from "./upstream-states.ts";

/** The parts of a session recorder. */
export type SessionParts = {
  readonly watermark: AckWatermark;
  readonly injections: Injections;
  readonly sessions: Sessions;
  readonly connections: Connections;
  readonly frames: FrameRecorder;
  /** Undefined if the upstream has event streams. */
  readonly observations: ObservationRecorder | undefined;
  readonly gaps: ChannelGaps;
  readonly states: UpstreamStates;
};

/** `onSession`: called when a connection's session is known. */
export function sessionParts(
  options: SessionRecorderOptions,
  journal: SourceJournal,
  onSession: (connection: UpstreamConnection) => void,
): SessionParts {
  const { log, source, normalizer, hello, signal, listener = {}, textTtl, replay, identityKey } = options;
  const { frameBytes = largestFrameBytes } = options;
  const { observing } = normalizer;
  const { settings } = hello;
  const watermark = new AckWatermark(hello.first_index === 0n ? 0n : hello.first_index - 1n);
  const injections = new Injections(normalizer, journal.history.calls);
  const onFrame = listener.frame ?? (() => {});
  const common = { journal, source, signal, frameBytes, textTtl, onFrame, reader: log.reader };
  const channels = new ChannelRecorder({ ...common, normalizer, injections });
  const sessions = openSessions({
    journal,
    reader: log.reader,
    source,
    normalizer,
    hello,
    signal,
    requireRedact: options.requireRedact,
  });
  const states = new UpstreamStates({ journal, normalizer, source, frameBytes, observed: listener.observed });
  const onAnotherSession = sessions.replace;
  const observations =
    observing &&
    new ObservationRecorder({
      ...common,
      watermark,
      observing,
      settings,
      onAnotherSession,
      identityKey,
      onObserved: listener.observation,
    });
  const onUnknownChannel = listener.unknownChannel;
  const frames = new FrameRecorder({
    journal,
    normalizer,
    watermark,
    sessions,
    channels,
    replay,
    identityKey,
    onUnknownChannel,
    onSession,
  });
  const gaps = new ChannelGaps(journal, normalizer);
  const connections = new Connections({ journal, hello, sessions, frames, gaps });
  return { watermark, injections, sessions, connections, frames, observations, gaps, states };
}

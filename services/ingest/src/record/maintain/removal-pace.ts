import { recordingDelays } from "../journal/recording-delays.ts";
import { Pace } from "./pace.ts";

/**
 * The pace of all that this process removes from the log. NATS syncs each removal to the disk, and the log's own messages wait
 * for that. One at a time, with nine times as long a rest where they are delayed, leaves most of the disk to them.
 */
export const removalPace = new Pace({ minShare: 0.1, recordingMs: () => recordingDelays.currentMs });

import { Pace } from "@tapedeck/shared/sync/pace";

/**
 * The pace of all that this process removes from the log. NATS syncs each removal to the disk, and the log's own messages wait
 * for that. One at a time, with three times as long a rest, leaves most of the disk to them.
 */
export const removalPace = new Pace({ share: 0.25 });

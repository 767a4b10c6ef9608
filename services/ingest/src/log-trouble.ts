import type { LogReader, Published } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";

export type LogTrouble = {
  /** A publish ended otherwise than acknowledged. */
  readonly met: (published: Exclude<Published, { outcome: "acknowledged" }>) => void;
  /** A publish was acknowledged. */
  readonly over: () => void;
};

/** Says in the service's log why nothing gets into the event log: once, however often and for how many sources it is met. */
export function logTrouble(bounds: LogReader["bounds"], logger: Logger): LogTrouble {
  let isAsking = false;
  let told: string | undefined;

  async function tell(refusal: unknown): Promise<void> {
    const err = await bounds().then(
      () => refusal,
      (cause: unknown) => cause,
    );
    const reason = err === undefined ? undefined : String(err);
    if (reason !== undefined && reason !== told) {
      logger.error({ err }, "nothing gets into the log now: what is seen waits in the spill");
    }
    told = reason;
  }

  return {
    met(published) {
      if (isAsking || published.outcome === "wrong-sequence") return;
      isAsking = true;
      void tell(published.outcome === "refused" ? published.cause : undefined).finally(() => {
        isAsking = false;
      });
    },
    over() {
      told = undefined;
    },
  };
}

import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { SourceName } from "@tapedeck/shared/source";

export function sourceTaken(source: SourceName): TapedeckError {
  return new TapedeckError("source_taken", `${source} is recorded by another tap`);
}

export function notReady(message: string, cause?: unknown): TapedeckError {
  return new TapedeckError("not_ready", `${message}: try again in a moment`, {}, { cause });
}

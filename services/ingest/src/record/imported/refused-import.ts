import { TapedeckError } from "@tapedeck/shared/errors/errors";

export function refusedImport(message: string): TapedeckError {
  return new TapedeckError("invalid_argument", message, { field: "imported" });
}

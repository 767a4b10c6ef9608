import { quantile } from "./row.ts";

export function percentiles(ascending: Float64Array): Readonly<Record<"p50" | "p99", number>> {
  return { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99) };
}

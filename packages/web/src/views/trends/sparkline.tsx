import type { Series } from "../../model/trends/figures.ts";

const [sparkWidth, sparkHeight] = [96, 20];

/** How something went, without an axis; what it went to is in the table's other columns. */
export function Sparkline({ values }: { readonly values: Series }) {
  const max = Math.max(1, ...values.map((value) => value ?? 0));
  const points = values.flatMap((value, index) => {
    if (value === null) return [];
    const x = values.length === 1 ? sparkWidth / 2 : 2 + (index / (values.length - 1)) * (sparkWidth - 4);
    return [[x, sparkHeight - 2 - (value / max) * (sparkHeight - 4)] as const];
  });
  const last = points.at(-1);
  // A single value is neither high nor low.
  const lastY = points.length === 1 ? sparkHeight / 2 : last?.[1];
  return (
    <svg class="spark" width={sparkWidth} height={sparkHeight} aria-hidden="true">
      <polyline points={points.map((point) => point.join(",")).join(" ")} fill="none" stroke="currentColor" />
      {last !== undefined && <circle cx={last[0]} cy={lastY} r="2" fill="currentColor" />}
    </svg>
  );
}

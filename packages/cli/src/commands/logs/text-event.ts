/** A text that was printed, as far as it is shown. */
export type TextEvent = {
  readonly position: string;
  readonly source: string;
  readonly session: string;
  readonly recordedAt: string;
  readonly occurredAt?: string;
  readonly subject?: string;
  readonly operation?: { readonly kind: string; readonly runner: number; readonly loop: number } | null;
  readonly detail?: TextDetail;
};

type TextDetail = {
  readonly text?: string;
  readonly noise?: boolean;
  readonly task?: string;
  readonly subtask?: string;
  readonly pod?: string;
  readonly container?: string;
};

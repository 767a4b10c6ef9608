export type Kind = "pods" | "images";

/**
 * Everything gone at once when a connection comes back: rkt answers so for a data directory that is not mounted. It is
 * not believed before a pod or image that was known is seen again (then it was nothing, or they went one by one), or
 * before looks have said so for `holdMs`. A host that had only pods, or only images, is judged by those alone.
 */
export type Extinction = {
  readonly connected: (known: Readonly<Record<Kind, boolean>>) => void;
  /** A good look: how many entries, and whether one was known before the connection; ms since the look before it. */
  readonly looked: (kind: Kind, look: { entries: number; knowsSome: boolean; ms: number }) => void;
  readonly verdict: (kind: Kind) => "none" | "held" | "certain";
  /** What was certain has been told. */
  readonly told: (kind: Kind) => void;
};

type Progress = { readonly had: boolean; readonly looked: boolean; readonly heldMs: number; readonly told: boolean };

export function extinction(holdMs: number): Extinction {
  let alive = true;
  const fresh: Progress = { had: false, looked: false, heldMs: 0, told: false };
  const progress: Record<Kind, Progress> = { pods: fresh, images: fresh };
  return {
    connected(known) {
      alive = !known.pods && !known.images;
      for (const kind of ["pods", "images"] as const) {
        progress[kind] = { ...progress[kind], had: known[kind], looked: false, told: false };
      }
    },
    looked(kind, { entries, knowsSome, ms }) {
      const before = progress[kind];
      alive ||= knowsSome || (before.had && !before.looked && entries > 0);
      progress[kind] = { ...before, looked: true, heldMs: alive ? 0 : before.heldMs + ms };
    },
    verdict(kind) {
      const { heldMs, told } = progress[kind];
      return alive || told ? "none" : heldMs < holdMs ? "held" : "certain";
    },
    told(kind) {
      progress[kind] = { ...progress[kind], heldMs: 0, told: true };
    },
  };
}

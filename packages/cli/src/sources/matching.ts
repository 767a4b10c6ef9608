import { namePart } from "@tapedeck/shared/source";

/** `isExact`: the text is a whole name, a developer or a project. Otherwise it is a piece of one. */
export type Matching = { readonly sources: readonly string[]; readonly isExact: boolean };

/** The sources that a text means: those with this name, developer or project, else those in whose name it begins a part, or is. */
export function matchingSources(text: string, all: readonly string[]): Matching {
  const name = text.split("/").map(namePart).join("/");
  const short = (source: string) => source.split("/").slice(1).join("/");
  const names = (source: string) => source.split("/").slice(1, 3);
  const exactly = [
    (source: string) => source === name || short(source) === name,
    (source: string) => names(source).join("/") === name,
    (source: string) => names(source).includes(name),
  ];
  const partly = [
    (source: string) => `/${short(source)}`.includes(`/${name}`),
    (source: string) => short(source).includes(name),
  ];
  for (const [index, isMeant] of [...exactly, ...partly].entries()) {
    const sources = all.filter(isMeant);
    if (sources.length > 0) return { sources, isExact: index < exactly.length };
  }
  return { sources: [], isExact: false };
}

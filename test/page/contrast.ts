/**
 * Returns the contrast of two colours given as "rgb(1, 2, 3)", as WCAG defines it: 1 for the same, 21 for black on
 * white.
 */
export function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [one, other].map(luminance).toSorted((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

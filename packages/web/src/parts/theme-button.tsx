import { effect, signal } from "@preact/signals";

const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const theme = signal<Theme>(storedTheme());
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  store(theme.value);
});

/** A browser may refuse to store anything, as for a file in a frame. */
function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem("theme");
    return themes.find((name) => name === stored) ?? "auto";
  } catch {
    return "auto";
  }
}

function store(chosen: Theme): void {
  try {
    localStorage.setItem("theme", chosen);
  } catch {
    // It lasts as long as the page.
  }
}

export function ThemeButton() {
  return (
    <button
      type="button"
      class="quiet theme"
      title={`Colours: ${theme.value}`}
      aria-label={`Colours: ${theme.value}. Change`}
      onClick={() => {
        theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "auto";
      }}
    >
      <span aria-hidden="true">{{ auto: "◐", light: "○", dark: "●" }[theme.value]}</span>
    </button>
  );
}

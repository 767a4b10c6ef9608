export function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <rect x="1.5" y="6.5" width="29" height="19" rx="4" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="11" cy="16" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="21" cy="16" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      <path d="M11 20h10" stroke="currentColor" stroke-width="2" />
    </svg>
  );
}

// Numbers and steps in words.

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(digits - 1).replace("e+", "e");
  return Number(value.toPrecision(Math.max(digits, size >= 1 ? Math.ceil(Math.log10(size + 1)) : digits))).toLocaleString("en");
}

export const count = (value: number, noun: string) => `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : "s"}`;

/** The step of a list that is nearest to a number. */
export function nearestOf(steps: readonly number[], step: number): number | null {
  let found: number | null = null;
  for (const candidate of steps) if (found === null || Math.abs(candidate - step) < Math.abs(found - step)) found = candidate;
  return found;
}

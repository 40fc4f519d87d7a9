import AxeBuilder from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** Narrow and dark, then wide and light. */
const looks = [["dark", 390], ["light", 1280]] as const;

/**
 * Holds the page that is open against what axe calls serious or critical, in both
 * looks, narrow and wide, and against scrolling sideways. The page is loaded once.
 */
export async function accessible(page: Page, name = "the page") {
  for (const [colorScheme, width] of looks) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    // The page is of one origin and has no frames: axe needs no page of its own to gather what it found.
    const found = await new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] }).analyze();
    const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
    expect(serious.map((v) => `${name}, ${colorScheme}: ${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.failureSummary ?? ""}`).slice(0, 3).join("; ")}`)).toEqual([]);
    const across = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(across, `${name} scrolls sideways at ${width}`).toBeLessThanOrEqual(0);
  }
}

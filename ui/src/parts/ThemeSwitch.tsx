import { useEffect, useState } from "react";

type Theme = "system" | "light" | "dark";
const themes: Theme[] = ["system", "light", "dark"];
const keptAs = "guideway-theme";

function kept(): Theme {
  try {
    const text = localStorage.getItem(keptAs);
    return themes.find((t) => t === text) ?? "system";
  } catch {
    return "system";
  }
}

/** Chooses between the light and the dark look, or the system's. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(kept);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem(keptAs, theme);
    } catch {
      // Storage is off: the choice lasts as long as the page.
    }
  }, [theme]);
  return (
    <label className="quiet">
      <span className="visually-hidden">Theme</span>
      <select value={theme} onChange={(e) => setTheme(themes.find((t) => t === e.target.value) ?? "system")}>
        {themes.map((t) => <option key={t} value={t}>Theme: {t}</option>)}
      </select>
    </label>
  );
}

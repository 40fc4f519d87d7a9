import { useEffect, useState } from "react";

/** A box to search with. It waits for a pause in the typing. */
export function SearchBox({ label, value, onSearch }: { label: string; value: string; onSearch: (words: string) => void }) {
  const [words, setWords] = useState(value);
  const [shown, setShown] = useState(value);
  if (value !== shown) { // the address has changed
    setShown(value);
    setWords(value);
  }
  useEffect(() => {
    if (words === value) return;
    const timer = setTimeout(() => onSearch(words.trim()), 250);
    return () => clearTimeout(timer);
  }, [words, value, onSearch]);
  return <input type="search" aria-label={label} placeholder={label} value={words} onChange={(e) => setWords(e.target.value)} />;
}

// Package spelling guesses which of the known words a misspelt one means, so that
// an error can name it.
package spelling

import "strings"

// Closest gives the known word that the text most likely means, or "" where none
// is close: at most a slip for every three letters, and three in all. Case,
// hyphens and underscores do not count. The text itself is never the answer.
func Closest(text string, known []string) string {
	best, bestDistance := "", 1+min(3, len(text)/3)
	for _, word := range known {
		if text == word {
			continue
		}
		if plain(text) == plain(word) {
			return word
		}
		if len(text)-len(word) >= bestDistance || len(word)-len(text) >= bestDistance {
			continue
		}
		if d := distance(strings.ToLower(text), strings.ToLower(word)); d < bestDistance {
			best, bestDistance = word, d
		}
	}
	return best
}

// plain is the word without case, hyphens and underscores.
func plain(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two words. Long words count as different.
func distance(a, b string) int {
	const limit = 48
	if len(a) > limit || len(b) > limit {
		return limit
	}
	var rows [3][limit + 1]int
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[0][j-2]+1)
			}
			rows[2][j] = d
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}

package compress

import "strings"

// keyWords splits a key into lower-case words: camel case, snake case, kebab case, dots,
// and acronyms ("userGoal", "DEBUG_LOG", "prURL"). Digits end a word and are not words.
func keyWords(key string) []string {
	var words []string
	from := -1
	end := func(i int) {
		if from >= 0 {
			words = append(words, strings.ToLower(key[from:i]))
			from = -1
		}
	}
	for i := range len(key) {
		c := key[i]
		if !isLetter(c) && c < 0x80 {
			end(i)
			continue
		}
		if from >= 0 && isUpper(c) {
			// A capital begins a word, unless it is inside an acronym.
			afterLower := !isUpper(key[i-1])
			beforeLower := i+1 < len(key) && isLower(key[i+1])
			if afterLower || beforeLower {
				end(i)
			}
		}
		if from < 0 {
			from = i
		}
	}
	end(len(key))
	return words
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// Package planted makes words for tests that check that data at rest does not contain what
// was written or deleted.
package planted

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Words returns words of 16 random letters. Search indexes leave out the letters that a
// word shares with its neighbor, so Find looks for the last letters only.
func Words(count int) []string {
	random := rand.New(rand.NewPCG(19, 200)) //nolint:gosec // G404: the same words in each test
	list := make([]string, count)
	for i := range list {
		word := make([]byte, 16)
		for j := range word {
			word[j] = "bcdfghkmnpqrtvwxz"[random.IntN(17)] // without vowels, stemming changes nothing
		}
		list[i] = string(word)
	}
	return list
}

// Find returns the words that a file below a directory contains, with the names of the files.
func Find(t *testing.T, dir string, words []string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // G122: a directory of a test
		for _, word := range words {
			if bytes.Contains(text, []byte(word[5:])) {
				found = append(found, fmt.Sprintf("%s in %s", word, filepath.Base(path)))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

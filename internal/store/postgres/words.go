package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// maxNote is the size of one row of words: the excerpt of a hit is looked
	// for in one row.
	maxNote = 8 << 10
	// maxToken is longer than any word that somebody would look for; the
	// server's limit is 2046.
	maxToken = 500
)

// userLexeme is what a vector has of its run's user. Words have no "!".
func userLexeme(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "u!" + hex.EncodeToString(sum[:8])
}

// readable makes a text fit for a column of text.
func readable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", " ")
}

// recordWords are the words of a run's record that it is found by.
func recordWords(r run.Record) string {
	words := readable(strings.Join([]string{r.Goal, r.Workflow, r.Name, filepath.Base(r.Project.Path), r.Project.Branch}, "\n"))
	return cut(words, maxNote)
}

// notes gives the rows of the words of a commit: as they are written, and as
// they are indexed.
func notes(words string) (texts, plain []string) {
	for rest := readable(words); strings.TrimSpace(rest) != ""; {
		piece := cut(rest, maxNote)
		if len(piece) < len(rest) {
			if space := strings.LastIndexFunc(piece, unicode.IsSpace); space > 0 {
				piece = piece[:space]
			}
		}
		rest = rest[len(piece):]
		if p := plainWords(piece); p != "" {
			texts, plain = append(texts, piece), append(plain, p)
		}
	}
	return texts, plain
}

// plainWords gives the words of a text in small letters, without accents, with
// single spaces between them and nothing else. The server's parser would take
// paths, branches and names of files as one word each, and nothing in a word of
// a search is an operator any more.
func plainWords(text string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		word = plainWord(word)
		if word == "" || len(word) > maxToken {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

func plainWord(word string) string {
	if isASCII(word) {
		return strings.ToLower(word)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsMark(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(word))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cut shortens a text to at most so many bytes, at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

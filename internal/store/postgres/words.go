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
	"github.com/guideway-dev/guideway/internal/store/rows"
)

const (
	// maxNote bounds the bytes of one row of words. The excerpt of a hit comes from one
	// row.
	maxNote = 8 << 10
	// maxToken is the maximum length of an indexed word, longer than any useful search
	// word. The server's limit is 2046.
	maxToken = 500
)

// userLexeme returns the lexeme that marks the rows of a user's runs. Words never contain
// "!".
func userLexeme(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "u!" + hex.EncodeToString(sum[:8])
}

// toValidText replaces characters that a text column cannot store.
func toValidText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", " ")
}

// recordWords returns the searchable words of a record.
func recordWords(r run.Record) string {
	words := toValidText(strings.Join([]string{r.Goal, r.Workflow, r.Name, filepath.Base(r.Project.Path), r.Project.Branch}, "\n"))
	return rows.Truncate(words, maxNote)
}

// noteRows returns the rows for the words of a commit: for each row the original text and
// the indexed text.
func noteRows(words string) (texts, plain []string) {
	for rest := toValidText(words); strings.TrimSpace(rest) != ""; {
		piece := rows.Truncate(rest, maxNote)
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

// plainWords returns the words of a text in lower case, without accents, separated by
// single spaces. Otherwise the server's parser would treat paths, branches and file names
// as one word each. plainWords also removes all operators from search words.
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

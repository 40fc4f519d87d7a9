package rollbackguard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
)

// tagBytes is the length of the truncated HMAC in a line.
const tagBytes = 16

// content is the parsed content of a head file.
type content struct {
	// heads has the head with the highest number of each run.
	heads map[string]run.Head
	// last has the most recent head of each run, in the order of the file.
	last map[string]run.Head
	// notes are the lines that record restores.
	notes []string
	// damaged has the numbers of the lines that are not valid.
	damaged []int
}

// computeTag returns the tag that authenticates the text of a line.
func (f *File) computeTag(text string) string {
	mac := hmac.New(sha256.New, f.key)
	mac.Write([]byte("guideway head line 1\x00" + text))
	return hex.EncodeToString(mac.Sum(nil)[:tagBytes])
}

// signLine returns a line with its tag.
func (f *File) signLine(text string) string { return text + " " + f.computeTag(text) + "\n" }

// witnessMark ends the line of a head that is only kept as evidence of a rollback.
const witnessMark = "witness"

// maxWitnesses bounds the witnesses of a run.
const maxWitnesses = 32

// headLine returns the line of a head. Ids consist of letters, digits and _; other
// characters are escaped.
func (f *File) headLine(id string, h run.Head) string {
	return f.signLine(plainLine(id, h))
}

func plainLine(id string, h run.Head) string {
	return fmt.Sprintf("%s %d %s", url.QueryEscape(id), h.Seq, hex.EncodeToString(h.MAC))
}

// noteLine returns a line that records a change of the file, its time, and a number.
func (f *File) noteLine(what string, n int) string {
	return f.signLine(fmt.Sprintf("# %s %s %d", what, f.now().UTC().Format(time.RFC3339), n))
}

// parseContent parses a file. It ignores an incomplete last line, repeated lines, and lines
// with a NUL: lines are not synced, so a power failure can leave zeros in their place. An
// attacker gains nothing by writing zeros, since cutting the file has the same effect.
func (f *File) parseContent(text string) *content {
	c := &content{heads: map[string]run.Head{}, last: map[string]run.Head{}}
	text = text[:strings.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.ContainsRune(line, 0) {
			continue
		}
		if !f.parseLine(c, strings.TrimSuffix(line, "\n")) {
			c.damaged = append(c.damaged, number)
		}
	}
	return c
}

// parseLine parses a line and reports whether it is valid.
func (f *File) parseLine(c *content, line string) bool {
	cutAt := strings.LastIndexByte(line, ' ')
	if cutAt < 0 {
		return false
	}
	text := line[:cutAt]
	if !hmac.Equal([]byte(f.computeTag(text)), []byte(line[cutAt+1:])) {
		return false
	}
	fields := strings.Fields(text)
	if len(fields) > 1 && fields[0] == "#" {
		if fields[1] == "restored" {
			c.notes = append(c.notes, line+"\n")
		}
		return true
	}
	id, h, ok := parseHead(fields)
	if !ok {
		return false
	}
	if len(fields) == 4 {
		c.addWitness(id, h)
		return true
	}
	if last, there := c.last[id]; there && h.Seq <= last.Seq && !bytes.Equal(h.MAC, last.MAC) {
		c.addWitness(id, last)
	}
	c.last[id] = h
	// Of two heads with the same number, keep the first, so that the recorded head does not
	// match a journal that was rolled back and continued differently.
	if known, there := c.heads[id]; !there || h.Seq > known.Seq {
		h.Witnesses = known.Witnesses
		c.heads[id] = h
	}
	return true
}

// addWitness keeps a head as evidence that it was followed by a lower number, or by a
// different event with the same number.
func (c *content) addWitness(id string, h run.Head) {
	known := c.heads[id]
	h.Witnesses = nil
	for _, w := range known.Witnesses {
		if w.Seq == h.Seq && bytes.Equal(w.MAC, h.MAC) {
			return
		}
	}
	known.Witnesses = append(slices.Clone(known.Witnesses), h)
	known.Witnesses = known.Witnesses[max(0, len(known.Witnesses)-maxWitnesses):]
	c.heads[id] = known
}

func parseHead(fields []string) (id string, h run.Head, ok bool) {
	if len(fields) != 3 && (len(fields) != 4 || fields[3] != witnessMark) {
		return "", h, false
	}
	id, err := url.QueryUnescape(fields[0])
	if err != nil {
		return "", h, false
	}
	if h.Seq, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
		return "", h, false
	}
	h.MAC, err = hex.DecodeString(fields[2])
	return id, h, err == nil
}

// formatLines returns the lines of a file with this content, except for the first line.
func (c *content) formatLines(f *File) string {
	var text bytes.Buffer
	for _, note := range c.notes {
		text.WriteString(note)
	}
	for _, id := range slices.Sorted(maps.Keys(c.heads)) {
		for _, w := range c.heads[id].Witnesses {
			text.WriteString(f.signLine(plainLine(id, w) + " " + witnessMark))
		}
		text.WriteString(f.headLine(id, c.heads[id]))
	}
	return text.String()
}

// sizeWhenWritten returns the size that the file had when it was last rewritten, as
// recorded in its first line.
func (f *File) sizeWhenWritten(text string) int64 {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "#" {
		return 0
	}
	n, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

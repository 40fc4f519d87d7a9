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

// tagBytes is how much of the HMAC stands in a line.
const tagBytes = 16

// content is what stands in a file.
type content struct {
	heads map[string]run.Head
	// last are the heads that came last, in the order of the file.
	last map[string]run.Head
	// notes are the lines that say when the file was restored.
	notes []string
	// damaged are the numbers of the lines that are not as they were written.
	damaged []int
}

// tag authenticates the text of a line.
func (f *File) tag(text string) string {
	mac := hmac.New(sha256.New, f.key)
	mac.Write([]byte("guideway head line 1\x00" + text))
	return hex.EncodeToString(mac.Sum(nil)[:tagBytes])
}

// signed is a line with its tag.
func (f *File) signed(text string) string { return text + " " + f.tag(text) + "\n" }

// witness ends the line of a head that only is kept as a witness.
const witness = "witness"

// mostWitnesses bounds those of one run.
const mostWitnesses = 32

// headLine is the line of a head. Ids have letters, digits and _; whatever else
// is in one does not break the line.
func (f *File) headLine(id string, h run.Head) string {
	return f.signed(plainLine(id, h))
}

func plainLine(id string, h run.Head) string {
	return fmt.Sprintf("%s %d %s", url.QueryEscape(id), h.Seq, hex.EncodeToString(h.MAC))
}

// noteLine is a line that says what was done with the file, when, and a number.
func (f *File) noteLine(what string, n int) string {
	return f.signed(fmt.Sprintf("# %s %s %d", what, f.now().UTC().Format(time.RFC3339), n))
}

// parse reads a file. A last line without an end was not written whole, and is
// left out; so are lines that say the same again, and lines with a NUL in them:
// as lines are not synced, a power loss may leave zeros in their place, and who
// writes zeros gains no more than who cuts the file.
func (f *File) parse(text string) *content {
	c := &content{heads: map[string]run.Head{}, last: map[string]run.Head{}}
	text = text[:strings.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.ContainsRune(line, 0) {
			continue
		}
		if !f.take(c, strings.TrimSuffix(line, "\n")) {
			c.damaged = append(c.damaged, number)
		}
	}
	return c
}

// take reads a line and says whether it is as it was written.
func (f *File) take(c *content, line string) bool {
	cutAt := strings.LastIndexByte(line, ' ')
	if cutAt < 0 {
		return false
	}
	text := line[:cutAt]
	if !hmac.Equal([]byte(f.tag(text)), []byte(line[cutAt+1:])) {
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
		c.witness(id, h)
		return true
	}
	if last, there := c.last[id]; there && h.Seq <= last.Seq && !bytes.Equal(h.MAC, last.MAC) {
		c.witness(id, last)
	}
	c.last[id] = h
	// Of two with one number the first stays: a journal that was rolled back
	// and went on differently does not fit it.
	if known, there := c.heads[id]; !there || h.Seq > known.Seq {
		h.Witnesses = known.Witnesses
		c.heads[id] = h
	}
	return true
}

// witness keeps a head that was followed by a lower number.
func (c *content) witness(id string, h run.Head) {
	known := c.heads[id]
	h.Witnesses = nil
	for _, w := range known.Witnesses {
		if w.Seq == h.Seq && bytes.Equal(w.MAC, h.MAC) {
			return
		}
	}
	known.Witnesses = append(slices.Clone(known.Witnesses), h)
	known.Witnesses = known.Witnesses[max(0, len(known.Witnesses)-mostWitnesses):]
	c.heads[id] = known
}

func parseHead(fields []string) (id string, h run.Head, ok bool) {
	if len(fields) != 3 && (len(fields) != 4 || fields[3] != witness) {
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

// lines are those of a file with this content, but for its first.
func (c *content) lines(f *File) string {
	var text bytes.Buffer
	for _, note := range c.notes {
		text.WriteString(note)
	}
	for _, id := range slices.Sorted(maps.Keys(c.heads)) {
		for _, w := range c.heads[id].Witnesses {
			text.WriteString(f.signed(plainLine(id, w) + " " + witness))
		}
		text.WriteString(f.headLine(id, c.heads[id]))
	}
	return text.String()
}

// baseOf gives the size that a file had when it was written, from its first
// line.
func (f *File) baseOf(text string) int64 {
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

package crashtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// call is a system call of a worker, with its beginning and its end in the order
// of all of them.
type call struct {
	name       string
	args       []argument
	result     int64
	unknown    bool // it was under way when the process ended
	begin, end int
}

// argument is one of a call: a word, a string's bytes, a descriptor's path.
type argument struct {
	word, path string
	data       []byte
}

func (a argument) number() int64 {
	n, err := strconv.ParseInt(a.word, 0, 64)
	if err != nil {
		return -1
	}
	return n
}

func (a argument) flag(name string) bool { return strings.Contains("|"+a.word+"|", "|"+name+"|") }

// layer is a file system below a directory that tells what was written from what
// is durable. It promises as little as POSIX does: a write is durable once the
// file is synced, a name once its directory is.
type layer struct {
	root string
	top  *node
	fds  map[int64]*handle
	// careless has it take no notice of syncs of files whose names end so.
	careless string
	// under are the calls under way, with what their end does.
	under map[*call]func()
}

// node is a file or a directory.
type node struct {
	dir bool
	// names are a directory's, as the running system sees them; naming is how
	// they came to be since the directory was synced, named counts what came
	// before.
	names, durable map[string]*node
	naming         []naming
	named          int
	// base is a file's content that is durable, changes came after it. size is
	// the file's as the running system sees it.
	base    []byte
	changes []*change
	size    int64
}

// naming is an atomic change of names in one directory; nil takes one away.
type naming map[string]*node

// change is a write, or the cutting of a file to a size.
type change struct {
	cut    bool
	at     int64
	data   []byte
	done   bool
	stable bool
}

type handle struct {
	node     *node
	position int64
	atEnd    bool
}

func newLayer(root string) *layer {
	return &layer{root: root, top: newDirectory()}
}

func newDirectory() *node {
	return &node{dir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

// reboot forgets descriptors: another process begins.
func (l *layer) reboot() {
	l.fds = map[int64]*handle{}
	l.under = map[*call]func(){}
}

// errUnsupported is a call that the layer does not know how to replay. It fails
// the test: what is not replayed is not tested.
var errUnsupported = errors.New("the layer does not know this call")

// begin is the beginning of a call: from now on, a write may have happened.
func (l *layer) begin(c *call) error {
	if c.result < 0 {
		return nil
	}
	switch c.name {
	case "write", "pwrite64":
		h, ok := l.fds[c.args[0].number()]
		if !ok || !l.within(c.args[0].path) {
			return nil
		}
		data := c.args[1].data
		if !c.unknown {
			data = data[:c.result]
		}
		at := h.position
		switch {
		case c.name == "pwrite64":
			at = c.args[3].number()
		case h.atEnd:
			at = h.node.size
		}
		if c.name == "write" {
			h.position = at + int64(len(data))
		}
		l.under[c] = h.node.change(change{at: at, data: data})
	case "ftruncate":
		if h, ok := l.fds[c.args[0].number()]; ok && l.within(c.args[0].path) {
			l.under[c] = h.node.change(change{cut: true, at: c.args[1].number()})
		}
	case "fsync", "fdatasync":
		if h, ok := l.fds[c.args[0].number()]; ok && l.within(c.args[0].path) {
			if l.careless == "" || !strings.HasSuffix(c.args[0].path, l.careless) {
				l.under[c] = h.node.sync()
			}
		}
	}
	return nil
}

// end is the end of a call: its effect is there for every other process.
func (l *layer) end(c *call) error {
	if c.result < 0 || c.unknown {
		return nil
	}
	switch c.name {
	case "openat":
		return l.open(c)
	case "lseek":
		if h, ok := l.fds[c.args[0].number()]; ok {
			h.position = c.result
		}
	case "write", "pwrite64", "ftruncate", "fsync", "fdatasync":
		if settle := l.under[c]; settle != nil {
			settle()
			delete(l.under, c)
		}
	case "mkdirat":
		return l.name(l.path(c.args[0], c.args[1]), newDirectory())
	case "unlinkat":
		return l.name(l.path(c.args[0], c.args[1]), nil)
	case "linkat":
		from := l.path(c.args[0], c.args[1])
		if found := l.find(from); found != nil {
			return l.name(l.path(c.args[2], c.args[3]), found)
		}
	case "renameat", "renameat2":
		return l.rename(l.path(c.args[0], c.args[1]), l.path(c.args[2], c.args[3]))
	case "mmap":
		return l.mapped(c)
	case "close":
	default:
		for _, a := range c.args {
			if l.within(a.path) || l.within(string(a.data)) {
				return fmt.Errorf("%w: %s", errUnsupported, c.name)
			}
		}
	}
	return nil
}

// mapped refuses what a mapping could write to files that must last.
func (l *layer) mapped(c *call) error {
	file := c.args[4].path
	if l.within(file) && c.args[2].flag("PROT_WRITE") && c.args[3].flag("MAP_SHARED") && !strings.HasSuffix(file, "-shm") {
		return fmt.Errorf("%w: a mapping of %s", errUnsupported, file)
	}
	return nil
}

func (l *layer) within(path string) bool {
	return path == l.root || strings.HasPrefix(path, l.root+"/")
}

// path is that of an argument that is relative to a directory's descriptor.
func (l *layer) path(dir, name argument) string {
	if filepath.IsAbs(string(name.data)) {
		return filepath.Clean(string(name.data))
	}
	return filepath.Join(dir.path, string(name.data))
}

// find gives what a path names, or nil.
func (l *layer) find(path string) *node {
	if !l.within(path) {
		return nil
	}
	at := l.top
	for _, name := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, l.root), "/"), "/") {
		if name == "" {
			continue
		}
		if at = at.names[name]; at == nil {
			return nil
		}
	}
	return at
}

func (l *layer) open(c *call) error {
	path := l.path(c.args[0], c.args[1])
	if !l.within(path) {
		delete(l.fds, c.result)
		return nil
	}
	flags := c.args[2]
	found := l.find(path)
	if found == nil {
		if !flags.flag("O_CREAT") {
			return fmt.Errorf("%s was opened and has never been made", path)
		}
		found = &node{}
		if err := l.name(path, found); err != nil {
			return err
		}
	}
	if flags.flag("O_TRUNC") && found.size > 0 {
		found.change(change{cut: true})()
	}
	l.fds[c.result] = &handle{node: found, atEnd: flags.flag("O_APPEND")}
	return nil
}

// name gives a node a name, or takes the name away.
func (l *layer) name(path string, n *node) error {
	if !l.within(path) {
		return nil
	}
	dir := l.find(filepath.Dir(path))
	if dir == nil {
		return fmt.Errorf("%s has no directory", path)
	}
	dir.rename(naming{filepath.Base(path): n})
	return nil
}

func (l *layer) rename(from, to string) error {
	if !l.within(from) && !l.within(to) {
		return nil
	}
	if filepath.Dir(from) != filepath.Dir(to) {
		return fmt.Errorf("%w: a rename from one directory to another", errUnsupported)
	}
	dir, moved := l.find(filepath.Dir(from)), l.find(from)
	if dir == nil || moved == nil {
		return fmt.Errorf("%s was renamed and has never been made", from)
	}
	dir.rename(naming{filepath.Base(from): nil, filepath.Base(to): moved})
	return nil
}

func (n *node) rename(c naming) {
	n.naming = append(n.naming, c)
	c.apply(n.names)
}

func (c naming) apply(names map[string]*node) {
	for name, to := range c {
		if to == nil {
			delete(names, name)
		} else {
			names[name] = to
		}
	}
}

// change begins a change and gives what its end does.
func (n *node) change(ch change) func() {
	n.changes = append(n.changes, &ch)
	if ch.cut {
		n.size = ch.at
	} else {
		n.size = max(n.size, ch.at+int64(len(ch.data)))
	}
	return func() { ch.done = true }
}

// sync gives what a sync that begins now makes durable at its end: what is
// complete now.
func (n *node) sync() func() {
	if n.dir {
		until := n.named + len(n.naming)
		return func() {
			for ; n.named < until; n.named++ { // another sync may have been faster
				n.naming[0].apply(n.durable)
				n.naming = n.naming[1:]
			}
		}
	}
	var complete []*change
	for _, ch := range n.changes {
		if ch.done {
			complete = append(complete, ch)
		}
	}
	return func() {
		for _, ch := range complete {
			ch.stable = true
		}
		for len(n.changes) > 0 && n.changes[0].stable {
			n.base = n.changes[0].apply(n.base)
			n.changes = n.changes[1:]
		}
	}
}

func (ch *change) apply(content []byte) []byte {
	end := ch.at + int64(len(ch.data))
	switch {
	case ch.cut && ch.at <= int64(len(content)):
		return content[:ch.at:ch.at]
	case end > int64(len(content)):
		content = append(content, make([]byte, end-int64(len(content)))...)
	}
	copy(content[ch.at:], ch.data)
	return content
}

// mercy is what a power loss leaves of what was not synced.
type mercy int

const (
	keepNothing mercy = iota
	keepAll
	// keepSome keeps sectors at random.
	keepSome
	mercies
)

// sector is what a disk writes as a whole.
const sector = 512

// lose writes what a power loss leaves to a directory.
func (l *layer) lose(dir string, m mercy, random *rand.Rand) error {
	return l.top.write(dir, m, random, map[*node]string{})
}

func (n *node) write(path string, m mercy, random *rand.Rand, written map[*node]string) error {
	if first, twice := written[n]; twice {
		return os.Link(first, path)
	}
	written[n] = path
	if !n.dir {
		return os.WriteFile(path, n.content(m, random), 0o600)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	names := maps.Clone(n.durable)
	kept := 0 // a journaled file system keeps the order of its names
	switch m {
	case keepAll:
		kept = len(n.naming)
	case keepSome:
		kept = random.IntN(len(n.naming) + 1)
	}
	for _, c := range n.naming[:kept] {
		c.apply(names)
	}
	for name, to := range names {
		if err := to.write(filepath.Join(path, name), m, random, written); err != nil {
			return err
		}
	}
	return nil
}

// content is what is left of a file.
func (n *node) content(m mercy, random *rand.Rand) []byte {
	content := append([]byte(nil), n.base...)
	least := 0 // changes that a sync has made durable, and those before them
	for i, ch := range n.changes {
		if ch.stable {
			least = i + 1
		}
	}
	kept := least
	switch m {
	case keepAll:
		kept = len(n.changes)
	case keepSome:
		kept += random.IntN(len(n.changes) - least + 1)
	}
	if m != keepSome {
		for _, ch := range n.changes[:kept] {
			content = ch.apply(content)
		}
		return content
	}
	// A file's size moves in order; what stands between two changes of it is
	// written sector by sector, in any order.
	from := 0
	for i, ch := range n.changes[:kept] {
		if ch.cut {
			from = i + 1
		}
	}
	for _, ch := range n.changes[:from] {
		content = ch.apply(content)
	}
	writes := n.changes[from:]
	for i, ch := range writes {
		if ch.cut {
			writes = writes[:i]
			break
		}
	}
	return mix(content, writes, max(least-from, 0), kept-from, random)
}

// mix applies writes to a file: of each sector some of them, in order and from
// the first on, because a sector is written as it is when it is. All have at
// least the first few; the others have about as many as were kept.
func mix(content []byte, writes []*change, least, kept int, random *rand.Rand) []byte {
	touched := map[int64][]int{}
	size := int64(len(content))
	for i, w := range writes {
		end := w.at + int64(len(w.data))
		for s := w.at / sector; s*sector < end; s++ {
			touched[s] = append(touched[s], i)
		}
		if i < least || i < kept || random.IntN(4) == 0 {
			size = max(size, end)
		}
	}
	strays := random.IntN(3) // how many of four sectors are not as the others
	for _, s := range slices.Sorted(maps.Keys(touched)) {
		until := kept
		if random.IntN(4) < strays {
			until = least + random.IntN(len(writes)-least+1)
		}
		for _, i := range touched[s] {
			if i < until {
				content = writes[i].within(s).apply(content)
			}
		}
	}
	if int64(len(content)) > size {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// within is the part of a write that falls into a sector.
func (ch *change) within(s int64) *change {
	from, to := max(ch.at, s*sector), min(ch.at+int64(len(ch.data)), (s+1)*sector)
	return &change{at: from, data: ch.data[from-ch.at : to-ch.at]}
}

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

// call is a system call of a worker. begin and end order all calls.
type call struct {
	name       string
	args       []argument
	result     int64
	unknown    bool // the call was in progress when the process ended
	begin, end int
}

// argument is an argument of a call: a word, the bytes of a string, or the path of a
// descriptor.
type argument struct {
	word, path string
	data       []byte
}

func (a argument) parseNumber() int64 {
	n, err := strconv.ParseInt(a.word, 0, 64)
	if err != nil {
		return -1
	}
	return n
}

func (a argument) hasFlag(name string) bool { return strings.Contains("|"+a.word+"|", "|"+name+"|") }

// crashFS models a file system below a directory and distinguishes written from durable
// data. It guarantees only what POSIX guarantees: a write is durable after the file is
// synced, a name after its directory is synced.
type crashFS struct {
	root string
	top  *node
	fds  map[int64]*handle
	// careless is a suffix of file names whose syncs are ignored.
	careless string
	// under maps each call in progress to the function that completes it.
	under map[*call]func()
}

// node is a file or a directory.
type node struct {
	dir bool
	// names are the names in a directory as the running system sees them, durable those
	// that a power failure cannot lose. naming has the changes since the last sync of the
	// directory, named is the number of all earlier changes.
	names, durable map[string]*node
	naming         []naming
	named          int
	// base is the durable content of a file, changes are the changes after it. size is the
	// current size for the running system.
	base    []byte
	changes []*change
	size    int64
}

// naming is an atomic change of names in one directory; nil removes a name.
type naming map[string]*node

// change is a write or a truncation.
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

func newLayer(root string) *crashFS {
	return &crashFS{root: root, top: newDirectory()}
}

func newDirectory() *node {
	return &node{dir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

// closeAll closes all descriptors before the next process starts.
func (l *crashFS) closeAll() {
	l.fds = map[int64]*handle{}
	l.under = map[*call]func(){}
}

// errUnsupported is returned for a system call that crashFS cannot replay. The test then
// fails instead of skipping the call.
var errUnsupported = errors.New("the model does not support this system call")

// beginCall begins a call: a write may take effect from now on.
func (l *crashFS) beginCall(c *call) error {
	if c.result < 0 {
		return nil
	}
	switch c.name {
	case "write", "pwrite64":
		h, ok := l.fds[c.args[0].parseNumber()]
		if !ok || !l.isInside(c.args[0].path) {
			return nil
		}
		data := c.args[1].data
		if !c.unknown {
			data = data[:c.result]
		}
		at := h.position
		switch {
		case c.name == "pwrite64":
			at = c.args[3].parseNumber()
		case h.atEnd:
			at = h.node.size
		}
		if c.name == "write" {
			h.position = at + int64(len(data))
		}
		l.under[c] = h.node.beginChange(change{at: at, data: data})
	case "ftruncate":
		if h, ok := l.fds[c.args[0].parseNumber()]; ok && l.isInside(c.args[0].path) {
			l.under[c] = h.node.beginChange(change{cut: true, at: c.args[1].parseNumber()})
		}
	case "fsync", "fdatasync":
		if h, ok := l.fds[c.args[0].parseNumber()]; ok && l.isInside(c.args[0].path) {
			if l.careless == "" || !strings.HasSuffix(c.args[0].path, l.careless) {
				l.under[c] = h.node.beginSync()
			}
		}
	}
	return nil
}

// endCall ends a call: its effect is visible to all processes.
func (l *crashFS) endCall(c *call) error {
	if c.result < 0 || c.unknown {
		return nil
	}
	switch c.name {
	case "openat":
		return l.openFile(c)
	case "lseek":
		if h, ok := l.fds[c.args[0].parseNumber()]; ok {
			h.position = c.result
		}
	case "write", "pwrite64", "ftruncate", "fsync", "fdatasync":
		if settle := l.under[c]; settle != nil {
			settle()
			delete(l.under, c)
		}
	case "mkdirat":
		return l.setName(l.resolvePath(c.args[0], c.args[1]), newDirectory())
	case "unlinkat":
		return l.setName(l.resolvePath(c.args[0], c.args[1]), nil)
	case "linkat":
		from := l.resolvePath(c.args[0], c.args[1])
		if found := l.findNode(from); found != nil {
			return l.setName(l.resolvePath(c.args[2], c.args[3]), found)
		}
	case "renameat", "renameat2":
		return l.renameFile(l.resolvePath(c.args[0], c.args[1]), l.resolvePath(c.args[2], c.args[3]))
	case "mmap":
		return l.checkMapping(c)
	case "close":
	default:
		for _, a := range c.args {
			if l.isInside(a.path) || l.isInside(string(a.data)) {
				return fmt.Errorf("%w: %s", errUnsupported, c.name)
			}
		}
	}
	return nil
}

// checkMapping refuses a writable mapping of a file that must be durable.
func (l *crashFS) checkMapping(c *call) error {
	file := c.args[4].path
	if l.isInside(file) && c.args[2].hasFlag("PROT_WRITE") && c.args[3].hasFlag("MAP_SHARED") && !strings.HasSuffix(file, "-shm") {
		return fmt.Errorf("%w: a writable mapping of %s", errUnsupported, file)
	}
	return nil
}

func (l *crashFS) isInside(path string) bool {
	return path == l.root || strings.HasPrefix(path, l.root+"/")
}

// resolvePath returns the path of an argument relative to a directory's descriptor.
func (l *crashFS) resolvePath(dir, name argument) string {
	if filepath.IsAbs(string(name.data)) {
		return filepath.Clean(string(name.data))
	}
	return filepath.Join(dir.path, string(name.data))
}

// findNode returns the node of a path, or nil.
func (l *crashFS) findNode(path string) *node {
	if !l.isInside(path) {
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

func (l *crashFS) openFile(c *call) error {
	path := l.resolvePath(c.args[0], c.args[1])
	if !l.isInside(path) {
		delete(l.fds, c.result)
		return nil
	}
	flags := c.args[2]
	found := l.findNode(path)
	if found == nil {
		if !flags.hasFlag("O_CREAT") {
			return fmt.Errorf("%s was opened but never created", path)
		}
		found = &node{}
		if err := l.setName(path, found); err != nil {
			return err
		}
	}
	if flags.hasFlag("O_TRUNC") && found.size > 0 {
		found.beginChange(change{cut: true})()
	}
	l.fds[c.result] = &handle{node: found, atEnd: flags.hasFlag("O_APPEND")}
	return nil
}

// setName names a node. With nil it removes the name.
func (l *crashFS) setName(path string, n *node) error {
	if !l.isInside(path) {
		return nil
	}
	dir := l.findNode(filepath.Dir(path))
	if dir == nil {
		return fmt.Errorf("%s has no directory", path)
	}
	dir.addNaming(naming{filepath.Base(path): n})
	return nil
}

func (l *crashFS) renameFile(from, to string) error {
	if !l.isInside(from) && !l.isInside(to) {
		return nil
	}
	if filepath.Dir(from) != filepath.Dir(to) {
		return fmt.Errorf("%w: a rename from one directory to another", errUnsupported)
	}
	dir, moved := l.findNode(filepath.Dir(from)), l.findNode(from)
	if dir == nil || moved == nil {
		return fmt.Errorf("%s was renamed but never created", from)
	}
	dir.addNaming(naming{filepath.Base(from): nil, filepath.Base(to): moved})
	return nil
}

func (n *node) addNaming(c naming) {
	n.naming = append(n.naming, c)
	c.applyTo(n.names)
}

func (c naming) applyTo(names map[string]*node) {
	for name, to := range c {
		if to == nil {
			delete(names, name)
		} else {
			names[name] = to
		}
	}
}

// beginChange begins a change and returns the function that completes it.
func (n *node) beginChange(ch change) func() {
	n.changes = append(n.changes, &ch)
	if ch.cut {
		n.size = ch.at
	} else {
		n.size = max(n.size, ch.at+int64(len(ch.data)))
	}
	return func() { ch.done = true }
}

// beginSync begins a sync and returns the function that completes it: the changes that were
// complete at the beginning become durable.
func (n *node) beginSync() func() {
	if n.dir {
		until := n.named + len(n.naming)
		return func() {
			for ; n.named < until; n.named++ { // another sync that began later may have ended first
				n.naming[0].applyTo(n.durable)
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
			n.base = n.changes[0].applyTo(n.base)
			n.changes = n.changes[1:]
		}
	}
}

func (ch *change) applyTo(content []byte) []byte {
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

// lossMode selects which unsynced changes survive a power failure.
type lossMode int

const (
	keepNothing lossMode = iota
	keepAll
	// keepSome keeps random sectors.
	keepSome
	mercies
)

// sector is the unit that a disk writes atomically.
const sector = 512

// writeSurvivors writes the files after a power failure to a directory.
func (l *crashFS) writeSurvivors(dir string, m lossMode, random *rand.Rand) error {
	return l.top.writeNode(dir, m, random, map[*node]string{})
}

func (n *node) writeNode(path string, m lossMode, random *rand.Rand, written map[*node]string) error {
	if first, twice := written[n]; twice {
		return os.Link(first, path)
	}
	written[n] = path
	if !n.dir {
		return os.WriteFile(path, n.survivingContent(m, random), 0o600)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	names := maps.Clone(n.durable)
	kept := 0 // a journaled file system keeps the order of changes of names
	switch m {
	case keepAll:
		kept = len(n.naming)
	case keepSome:
		kept = random.IntN(len(n.naming) + 1)
	}
	for _, c := range n.naming[:kept] {
		c.applyTo(names)
	}
	for name, to := range names {
		if err := to.writeNode(filepath.Join(path, name), m, random, written); err != nil {
			return err
		}
	}
	return nil
}

// survivingContent returns the content of a file after a power failure.
func (n *node) survivingContent(m lossMode, random *rand.Rand) []byte {
	content := append([]byte(nil), n.base...)
	least := 0 // least counts the durable changes and those before them
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
			content = ch.applyTo(content)
		}
		return content
	}
	// Changes of the size take effect in order. The writes between two of them take effect
	// sector by sector, in any order.
	from := 0
	for i, ch := range n.changes[:kept] {
		if ch.cut {
			from = i + 1
		}
	}
	for _, ch := range n.changes[:from] {
		content = ch.applyTo(content)
	}
	writes := n.changes[from:]
	for i, ch := range writes {
		if ch.cut {
			writes = writes[:i]
			break
		}
	}
	return mixSectors(content, writes, max(least-from, 0), kept-from, random)
}

// mixSectors applies writes to a file. To each sector it applies the first writes in order:
// at least the first least writes, and usually the first kept writes.
func mixSectors(content []byte, writes []*change, least, kept int, random *rand.Rand) []byte {
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
	strays := random.IntN(3) // about this many of four sectors keep a different number of writes
	for _, s := range slices.Sorted(maps.Keys(touched)) {
		until := kept
		if random.IntN(4) < strays {
			until = least + random.IntN(len(writes)-least+1)
		}
		for _, i := range touched[s] {
			if i < until {
				content = writes[i].clipToSector(s).applyTo(content)
			}
		}
	}
	if int64(len(content)) > size {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// clipToSector returns the part of a write in a sector.
func (ch *change) clipToSector(s int64) *change {
	from, to := max(ch.at, s*sector), min(ch.at+int64(len(ch.data)), (s+1)*sector)
	return &change{at: from, data: ch.data[from-ch.at : to-ch.at]}
}

package crashtest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// traced are the system calls that change files, make them durable, or move the file
// offset.
const traced = "openat,openat2,open,creat,dup,dup2,dup3,lseek,write,pwrite64,writev,pwritev,pwritev2," +
	"ftruncate,truncate,fallocate,fsync,fdatasync,msync,sync,syncfs,sync_file_range," +
	"rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat," +
	"copy_file_range,sendfile,splice,mmap,io_uring_setup"

// traceCommand returns the command that logs the writes of a worker, or skips the test.
func traceCommand(t *testing.T, log string) []string {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: apt-get install strace")
	}
	front := []string{strace, "-f", "-q", "-y", "-xx", "-a", "1", "--seccomp-bpf", "-s", strconv.Itoa(1 << 26), "-e", "trace=" + traced, "-o", log}
	trial := exec.CommandContext(t.Context(), front[0], append(slices.Clone(front[1:]), "true")...)
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("strace is not allowed to trace: %v: %s", err, out)
	}
	return front
}

// readTrace reads the log of traceCommand.
func readTrace(name string) ([]*call, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var calls []*call
	open := map[string]string{} // the beginning of a call, by thread
	begun := map[string]*call{}
	at := 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<28)
	for lines.Scan() {
		at++
		thread, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		rest = strings.TrimSpace(rest)
		switch {
		case strings.HasPrefix(rest, "+++"), strings.HasPrefix(rest, "---"):
		case strings.HasSuffix(rest, "<unfinished ...>"):
			c := &call{begin: at}
			open[thread], begun[thread] = strings.TrimSuffix(rest, "<unfinished ...>"), c
			calls = append(calls, c)
		case strings.HasPrefix(rest, "<... "):
			_, more, _ := strings.Cut(rest, "resumed>")
			c := begun[thread]
			if c == nil {
				return nil, fmt.Errorf("line %d ends a call that has not begun", at)
			}
			c.end = at
			if err := c.parseLine(open[thread] + more); err != nil {
				return nil, fmt.Errorf("line %d: %w", at, err)
			}
			delete(begun, thread)
		default:
			c := &call{begin: at, end: at}
			if err := c.parseLine(rest); err != nil {
				return nil, fmt.Errorf("line %d: %w", at, err)
			}
			calls = append(calls, c)
		}
	}
	for thread, c := range begun { // these calls were in progress when the process ended
		if err := c.parseLine(open[thread] + ") = ?"); err != nil {
			return nil, err
		}
	}
	return calls, lines.Err()
}

// parseLine parses a line of strace: name(arguments) = result.
func (c *call) parseLine(line string) error {
	name, rest, ok := strings.Cut(line, "(")
	last := strings.LastIndex(rest, ") = ")
	if !ok || last < 0 {
		return fmt.Errorf("not a call: %.200s", line)
	}
	c.name = name
	args := splitArguments(rest[:last])
	for _, text := range args {
		a, err := readArgument(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.args = append(c.args, a)
	}
	c.toRelative()
	result, _, _ := strings.Cut(rest[last+len(") = "):], " ")
	result, _, _ = strings.Cut(result, "<")
	if result == "?" {
		c.unknown = true
		return nil
	}
	n, err := strconv.ParseInt(result, 0, 64)
	if err != nil {
		return fmt.Errorf("the result of %s: %w", name, err)
	}
	c.result = n
	return nil
}

// toRelative converts a call with plain paths to the variant with directory descriptors.
func (c *call) toRelative() {
	const paths = "open mkdir unlink link rename"
	if !slices.Contains(strings.Fields(paths), c.name) {
		return
	}
	here := argument{word: "AT_FDCWD"}
	c.args = slices.Insert(c.args, 0, here)
	if c.name == "link" || c.name == "rename" {
		c.args = slices.Insert(c.args, 2, here)
	}
	c.name += "at"
}

// splitArguments splits at commas outside of brackets. Strings are in hexadecimal, so they
// contain neither commas nor brackets.
func splitArguments(text string) []string {
	var args []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(args, strings.TrimSpace(text[from:]))
}

// readArgument reads a string, a descriptor with its path, or a word.
func readArgument(text string) (argument, error) {
	a := argument{word: text}
	if strings.HasPrefix(text, `"`) {
		if !strings.HasSuffix(text, `"`) {
			return a, errors.New("a string was cut off")
		}
		data, err := decodeHex(strings.Trim(text, `"`))
		a.data = data
		return a, err
	}
	if number, rest, ok := strings.Cut(text, "<"); ok && strings.Contains(rest, ">") {
		name, _, _ := strings.Cut(rest, ">")
		path, err := decodeHex(name)
		if err != nil {
			return a, err
		}
		a.word, a.path = number, string(path)
	}
	return a, nil
}

// decodeHex decodes a string in the format of strace -xx.
func decodeHex(text string) ([]byte, error) {
	if text == "" {
		return []byte{}, nil
	}
	data, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	if err != nil {
		return nil, fmt.Errorf("read a string: %w", err)
	}
	return data, nil
}

package app

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// maxUpstreamLog limits the size of the log of an upstream. One older file is kept.
const maxUpstreamLog = 512 << 10

// UpstreamLogDir returns the directory of the upstream logs.
func UpstreamLogDir(cfg *config.Config) string {
	if cfg.Dirs.State == "" {
		return ""
	}
	return filepath.Join(cfg.Dirs.State, "upstreams")
}

func upstreamLogFile(dir, name string) string { return filepath.Join(dir, name+".log") }

// UpstreamLogs stores the lines that upstreams write to standard error, so that "guideway
// upstream logs" can read them in another process.
type UpstreamLogs struct {
	Dir string

	mu    sync.Mutex
	files map[string]*os.File
}

// AddLine appends a line. It ignores errors.
func (l *UpstreamLogs) AddLine(name, text string) {
	if l.Dir == "" || upstream.CheckName(name) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	file := l.openFile(name)
	if file == nil {
		return
	}
	_, _ = file.WriteString(time.Now().UTC().Format(time.RFC3339) + " " + text + "\n")
}

// openFile returns the file of an upstream, and rotates it if it is full. The caller holds
// mu.
func (l *UpstreamLogs) openFile(name string) *os.File {
	path := upstreamLogFile(l.Dir, name)
	file := l.files[name]
	if file != nil {
		if info, err := file.Stat(); err == nil && info.Size() < maxUpstreamLog {
			return file
		}
		_ = file.Close()
		_ = os.Rename(path, path+".1")
	}
	if atomicfile.MakeDir(l.Dir) != nil {
		return nil
	}
	file, err := atomicfile.OpenAppend(path)
	if err != nil {
		return nil
	}
	if l.files == nil {
		l.files = map[string]*os.File{}
	}
	l.files[name] = file
	return file
}

// Close closes the files of the logs.
func (l *UpstreamLogs) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, file := range l.files {
		_ = file.Close()
	}
	l.files = nil
}

// ReadUpstreamLog returns the last lines that an upstream has logged to any process.
func ReadUpstreamLog(dir, name string, n int) ([]string, error) {
	var lines []string
	path := upstreamLogFile(dir, name)
	for _, each := range []string{path + ".1", path} {
		text, err := os.ReadFile(each)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	}
	return lines[max(0, len(lines)-n):], nil
}

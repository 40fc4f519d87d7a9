package app

import (
	"bufio"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// maxUpstreamLog bounds the file of what an upstream says; the one before it is
// kept too.
const maxUpstreamLog = 512 << 10

func UpstreamLogDir(cfg *config.Config) string {
	if cfg.Dirs.State == "" {
		return ""
	}
	return filepath.Join(cfg.Dirs.State, "upstreams")
}

func upstreamLogFile(dir, name string) string { return filepath.Join(dir, name+".log") }

// UpstreamLogs keeps what upstreams say on their error output, for "guideway
// upstream logs" of another process.
type UpstreamLogs struct {
	Dir string

	mu    sync.Mutex
	files map[string]*os.File
}

// AddLine adds a line. What cannot be kept is lost: nobody waits for it.
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

// openFile opens the file of an upstream, and begins a new one where it is full. mu
// is held.
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
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	if l.files == nil {
		l.files = map[string]*os.File{}
	}
	l.files[name] = file
	return file
}

func (l *UpstreamLogs) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, file := range l.files {
		_ = file.Close()
	}
	l.files = nil
}

// ReadUpstreamLog gives the last lines that an upstream has said to any
// process.
func ReadUpstreamLog(dir, name string, n int) ([]string, error) {
	var lines []string
	path := upstreamLogFile(dir, name)
	for _, each := range []string{path + ".1", path} {
		file, err := os.Open(each)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		scan := bufio.NewScanner(file)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			lines = append(lines, scan.Text())
		}
		_ = file.Close()
	}
	return lines[max(0, len(lines)-n):], nil
}

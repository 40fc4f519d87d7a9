package workflow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// target is a program to measure.
type target struct {
	name    string
	command []string
	dir     string
	env     []string
	// echoes says that a client can send back the context that it was given.
	echoes bool
	// mustKill says that the program does not end by itself.
	mustKill bool
}

// with gives the target with more variables, which win over those it has.
func (t *target) with(env ...string) *target {
	c := *t
	c.env = slices.Concat(t.env, env)
	return &c
}

// server is a running target that answers on its standard output.
type server struct {
	target *target
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
	era    era
	lastID int
	// started is the time just before the process was made.
	started time.Time
}

// start starts a target. The end of ctx kills it, so that no read waits for
// ever.
func (t *target) start(ctx context.Context, e era) (*server, error) {
	s := &server{target: t, era: e}
	s.cmd = exec.CommandContext(ctx, t.command[0], t.command[1:]...) //nolint:gosec // the program to measure
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = t.dir, t.env, &s.errors
	s.cmd.WaitDelay = time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	s.in, s.out = in, bufio.NewReaderSize(out, 1<<20)
	s.started = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	return s, nil
}

// stop ends the process and gives the CPU time that it took in all.
func (s *server) stop() time.Duration {
	_ = s.in.Close()
	if s.target.mustKill {
		_ = s.cmd.Process.Kill()
	}
	patience := time.AfterFunc(3*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer patience.Stop()
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}

// call sends a request and waits for its answer. The time ends when the answer
// is there, before it is read. The end of ctx ends it only if it ends the
// process too.
func (s *server) call(_ context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	s.lastID++
	line, err := request(s.era, s.lastID, method, params)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return nil, 0, s.failed(method, err)
	}
	for {
		answer, err := s.out.ReadBytes('\n')
		took := time.Since(began)
		if err != nil {
			return nil, 0, s.failed(method, err)
		}
		// What is not the answer is a notification, or not JSON at all.
		if result, ok, err := readAnswer(answer, s.lastID); ok || err != nil {
			return result, took, err
		}
	}
}

// greet does what a client of the legacy era does first.
func (s *server) greet(ctx context.Context) error {
	if s.era == modern {
		return nil
	}
	if _, _, err := s.call(ctx, "initialize", initializeParams()); err != nil {
		return err
	}
	line, err := notification("notifications/initialized")
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return s.failed("notifications/initialized", err)
	}
	return nil
}

func (s *server) failed(method string, err error) error {
	const most = 2000
	said := bytes.TrimSpace(s.errors.Bytes())
	return fmt.Errorf("%s of %s: %w\n%s", method, s.target.name, err, said[max(0, len(said)-most):])
}

// pid is the process to look at.
func (s *server) pid() int { return s.cmd.Process.Pid }

// size is the size of the program's file.
func (t *target) size() (int64, error) {
	info, err := os.Stat(t.command[0])
	if err != nil {
		return 0, fmt.Errorf("look at the program: %w", err)
	}
	return info.Size(), nil
}

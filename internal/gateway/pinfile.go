package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/privatefile"
	"github.com/guideway-dev/guideway/internal/upstream"
)

// PinFiles keeps pins in a directory, a file for each upstream. Several processes
// may use it.
type PinFiles struct{ Dir string }

var _ Pins = PinFiles{}

// maxPins bounds what is read.
const maxPins = 64 << 20

func (p PinFiles) file(name string) (privatefile.File, error) {
	if err := upstream.CheckName(name); err != nil {
		return privatefile.File{}, err
	}
	return privatefile.File{
		Path: filepath.Join(p.Dir, name+".json"), What: "file of approved tools",
		IfSeen: "nothing is lost: it holds no secret", MaxBytes: maxPins,
	}, nil
}

// Approved implements Pins. A file that cannot be read is an error and never
// nothing: everything would be approved anew.
func (p PinFiles) Approved(name string) (map[string]Pin, error) {
	file, err := p.file(name)
	if err != nil {
		return nil, err
	}
	text, err := file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pins := map[string]Pin{}
	if err := json.Unmarshal([]byte(text), &pins); err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the file of approved tools %s is damaged", file.Path).
			WithFix("look at it, or move it away to approve the tools anew")
	}
	return pins, nil
}

// lockTime is how long another process may take with the file.
const lockTime = 5 * time.Second

// Approve implements Pins.
func (p PinFiles) Approve(name string, add map[string]Pin) error {
	file, err := p.file(name)
	if err != nil {
		return err
	}
	if err := privatefile.MakeDir(p.Dir); err != nil {
		return fmt.Errorf("keep the approved tools: %w", err)
	}
	lock := flock.New(filepath.Join(p.Dir, ".lock"))
	for until := time.Now().Add(lockTime); ; {
		ok, err := lock.TryLock()
		if err != nil {
			return fmt.Errorf("keep the approved tools: %w", err)
		}
		if ok {
			break
		}
		if time.Now().After(until) {
			return guideway.Errorf(guideway.CodeUnavailable, "another process keeps the approved tools locked").WithFix("try again")
		}
		<-time.After(10 * time.Millisecond)
	}
	defer func() { _ = lock.Unlock() }()
	pins, err := p.Approved(name)
	if err != nil {
		return err
	}
	if pins == nil {
		pins = map[string]Pin{}
	}
	for tool, pin := range add {
		if pin.Hash == "" {
			delete(pins, tool)
			continue
		}
		pins[tool] = pin
	}
	text, err := json.MarshalIndent(pins, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the approved tools: %w", err)
	}
	return privatefile.Replace(file.Path, string(text)+"\n")
}

// Forget takes all pins of an upstream away.
func (p PinFiles) Forget(name string) error {
	file, err := p.file(name)
	if err != nil {
		return err
	}
	if err := os.Remove(file.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the approved tools: %w", err)
	}
	return nil
}

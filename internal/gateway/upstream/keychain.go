package upstream

import (
	"errors"
	"time"

	"github.com/zalando/go-keyring"
)

// keychainService is the service that secrets of upstreams are kept under.
const keychainService = "guideway"

// keychainTime bounds the wait: a keychain that is locked may ask a person who
// is not there.
const keychainTime = 10 * time.Second

// Keychain looks up a secret in the system's keychain.
func Keychain(name string) (string, error) {
	type found struct {
		value string
		err   error
	}
	done := make(chan found, 1)
	go func() {
		value, err := keyring.Get(keychainService, name)
		done <- found{value, err}
	}()
	timer := time.NewTimer(keychainTime)
	defer timer.Stop()
	select {
	case f := <-done:
		return f.value, f.err
	case <-timer.C:
		return "", errors.New("the keychain has not answered")
	}
}

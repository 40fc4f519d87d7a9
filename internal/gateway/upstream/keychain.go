package upstream

import (
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// keychainService is the keychain service of upstreams' secrets.
const keychainService = "guideway"

// keychainTime limits the wait, because a locked keychain may prompt a person who is
// absent.
const keychainTime = 10 * time.Second

// Keychain reads a secret from the system's keychain.
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
		return "", fmt.Errorf("the keychain did not answer within %s", keychainTime)
	}
}

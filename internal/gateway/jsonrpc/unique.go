package jsonrpc

import "errors"

// ErrDuplicate is the error of CheckUnique for a duplicate member.
var ErrDuplicate = errors.New("an object has a member twice")

// CheckUnique returns an error if an object in a JSON value has a member twice, at any
// level: readers of such an object differ in the value of the member. The nesting of the
// value must be limited.
func CheckUnique(text []byte) error {
	s := scanner{text: text}
	return s.checkUnique()
}

// checkUnique skips a value and checks its objects.
func (s *scanner) checkUnique() error {
	var keys unknownKeys
	var end byte = ']'
	switch {
	case s.accept('{'):
		end = '}'
	case !s.accept('['):
		if len(s.skipValue()) == 0 {
			return errNotJSON
		}
		return nil
	}
	if s.accept(end) {
		return nil
	}
	for {
		if end == '}' {
			key, err := s.readKey()
			switch {
			case err != nil:
				return err
			case keys.addKey(key) != nil:
				return ErrDuplicate
			case !s.accept(':'):
				return errNotJSON
			}
		}
		if err := s.checkUnique(); err != nil {
			return err
		}
		if s.accept(end) {
			return nil
		}
		if !s.accept(',') {
			return errNotJSON
		}
	}
}

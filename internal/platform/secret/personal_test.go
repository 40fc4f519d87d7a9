package secret_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/secret"
)

// TestPersonalData checks that personal data is found only if that is turned on, that it is
// redacted, and that similar numbers and names are not changed.
func TestPersonalData(t *testing.T) {
	t.Parallel()
	personal := secret.Detector{Personal: true}
	for value, rule := range map[string]string{
		"ann.lee+x@mail.co.uk": "email-address", "4111 1111 1111 1111": "card-number", "4111111111111111": "card-number",
		"3782-822463-10005": "card-number", "DE89 3704 0044 0532 0130 00": "iban", "GB82WEST12345698765432": "iban",
		"+49 30 901820": "phone-number", "+14155550132": "phone-number", "0044 20 7946 0958": "phone-number",
		"(415) 555-0132": "phone-number", "415.555.0132": "phone-number", "536-22-8726": "social-security-number",
	} {
		for _, text := range []string{value, "write " + value + ".", `{"a":"` + value + `"}`, "x: " + value + ", y"} {
			found := secret.NewScanner(personal).Scan(map[string]any{"text": text})
			if len(found) != 1 || found[0].Rule != rule {
				t.Errorf("%q: %v, want %s", text, found, rule)
			}
			if clean, _ := personal.Redact(text, "X"); strings.Contains(clean, value) || !strings.Contains(clean, "X") {
				t.Errorf("%q became %q", text, clean)
			}
			if found := secret.NewScanner(secret.Detector{}).Scan(map[string]any{"text": text}); len(found) != 0 {
				t.Errorf("%q: %v although personal data is off", text, found)
			}
		}
	}
	for _, text := range []string{
		"git@github.com:acme/app.git", "ann@example.com", "ann@host", "node@20.11.1", "4111 1111 1111 1112", "1111 1111 1111 1111", "GB82WEST12345698765433",
		"1767607200123456789", "2026-01-05", "2026-01-05T10:00:00.123456789Z", "+12 -3456", "v1.22.333.4444", "10.20.30.40", "000-12-3456", "666-12-3456", "123-00-4567",
		"48571132-48571132", "978-3-16-148410-0", "x4111111111111111", "1415.555.01322", "550e8400-e29b-41d4-a716-446655440000",
	} {
		if found := secret.NewScanner(personal).Scan(map[string]any{"text": text}); len(found) != 0 {
			t.Errorf("%q: %v", text, found)
		}
	}
}

// TestCardNumbers checks that a number with a valid check digit is a card number only with a
// prefix of a card network and the length that the network uses.
func TestCardNumbers(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{
		"345612345678904": true, "378282246310005": true, "4222222222222": true, "4111111111111111": true, "4111111111111111110": true,
		"2223000048400011": true, "2720999999999996": true, "5105105105105100": true, "5555555555554444": true,
		"3530111333300000": true, "6011111111111117": true,
		"3712345678901234": false, "411111111111124": false, "51051051051051": false,
		"3650123456789012": false, "5050123456789013": false, "2100123456789010": false, "6600123456789016": false,
	} {
		if _, found := (secret.Detector{Personal: true}).Redact(number, "X"); found != want {
			t.Errorf("%s (%d digits) is a card number: %t, want %t", number, len(number), found, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a span of time, written as a text such as "2s" or "250ms".
type Duration struct {
	time.Duration
	unread string // what stands in the file, where that is no duration
}

func span(d time.Duration) Duration { return Duration{Duration: d} }

// UnmarshalJSON reads a duration. It never fails: validation reports what cannot
// be read together with everything else, and where it stands.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) != nil {
		d.unread = string(data)
		return nil
	}
	if text == nil { // null, like a field that is absent
		return nil
	}
	span, err := time.ParseDuration(*text)
	*d = Duration{Duration: span}
	if err != nil {
		d.unread = fmt.Sprintf("%q", *text)
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

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
	if string(data) == "null" { // like a field that is absent
		return nil
	}
	*d = parseDuration(data)
	return nil
}

func parseDuration(data []byte) Duration {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return Duration{unread: string(data)}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Duration{unread: fmt.Sprintf("%q", text)}
	}
	return span(d)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

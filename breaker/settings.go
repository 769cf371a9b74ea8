// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"math/rand/v2"
	"time"
)

// Settings of a Breaker. A zero field, or a negative one, means its default.
type Settings struct {
	// Window is how far back outcomes count while closed, 10 s. It rolls in
	// buckets of a tenth.
	Window time.Duration
	// MinRequests is how many outcomes the Window must hold before their ratio
	// opens anything, 10. Where two other clusters have an open circuit, and no
	// cluster without one has had an answer for a Window, one is enough.
	MinRequests int
	// FailureRatio is the share of failures in the Window that opens, 0.5.
	FailureRatio float64
	// ConnectFailures is how many connection failures in a row open the
	// Endpoint without waiting for MinRequests, 3, unless another attempt
	// succeeded in the last 100 ms.
	ConnectFailures int

	// OpenTime is how long it stays open before the first probe, 5 s. Each
	// failed probe doubles it, up to MaxOpenTime, 60 s. Both are drawn from
	// 20 % below to 20 % above, so that many breakers do not probe as one.
	OpenTime    time.Duration
	MaxOpenTime time.Duration
	// ProbeTimeout is how long a probe is waited for, 2 s. Then the next one may
	// go, and gets twice as long (up to MaxOpenTime): a webhook that is well but
	// slow is found in the end. It should be at least what the webhook usually
	// needs for an answer.
	ProbeTimeout time.Duration
	// ForcedInterval is the least time between two forced attempts of a cluster,
	// 100 ms.
	ForcedInterval time.Duration
	// RampWidth is the number of attempts at a time at which the ramp 1, 2,
	// 4 ... ends and the circuit is closed, 32.
	RampWidth int

	// Replicas returns how many processes ask the same Endpoint. OpenTime, with all that
	// follows from it, and ForcedInterval are that many times as long, and spread, so
	// that all together probe no more often than one alone. It is called under the
	// Breaker's lock. nil: this one is alone.
	Replicas func() int

	// Changed is notified of each change of a circuit, without the lock, on the
	// goroutine of whoever ends an attempt, or calls Tell or Status. Changes that two
	// goroutines have found may arrive in another order than that of their times. nil:
	// nobody is.
	Changed func(Change)

	// Rand returns a number in [0, 1) for the jitter; nil means math/rand/v2.
	// It is called under the Breaker's lock.
	Rand func() float64
}

// buckets is the number of steps in which the Window rolls.
const buckets = 10

// withDefaults returns the settings with every zero field filled in.
func (s Settings) withDefaults() Settings {
	s.Window = positive(s.Window, 10*time.Second)
	s.MinRequests = positive(s.MinRequests, 10)
	s.FailureRatio = positive(s.FailureRatio, 0.5)
	s.ConnectFailures = positive(s.ConnectFailures, 3)
	s.OpenTime = positive(s.OpenTime, 5*time.Second)
	s.MaxOpenTime = max(positive(s.MaxOpenTime, time.Minute), s.OpenTime)
	s.ProbeTimeout = positive(s.ProbeTimeout, 2*time.Second)
	s.ForcedInterval = positive(s.ForcedInterval, 100*time.Millisecond)
	s.RampWidth = positive(s.RampWidth, 32)
	if s.Rand == nil {
		s.Rand = rand.Float64
	}
	return s
}

// positive returns the value, or the default where it says nothing.
func positive[T int | float64 | time.Duration](value, byDefault T) T {
	if value > 0 {
		return value
	}
	return byDefault
}

// openTime returns how long to stay open after so many failed probes.
func (s *Settings) openTime(failedProbes int) time.Duration {
	d := s.OpenTime
	for range failedProbes {
		d = s.doubled(d)
		if d == s.MaxOpenTime {
			break
		}
	}
	return s.spread(time.Duration(float64(d)*(0.8+0.4*s.Rand())), d)
}

// maxSpread is how many times MaxOpenTime a circuit stays open at most on average, however
// many replicas there are: an Endpoint that is well must be found.
const maxSpread = 10

// spread returns a time before an attempt of which the replicas together make one every
// d. first is what one alone would wait.
func (s *Settings) spread(first, d time.Duration) time.Duration {
	if s.Replicas == nil {
		return first
	}
	others := time.Duration(s.Replicas() - 1)
	if others <= 0 {
		return first
	}
	mean := min(others*d, maxSpread*s.MaxOpenTime-d)
	return first + time.Duration(2*s.Rand()*float64(mean))
}

// doubled returns twice the time, at most MaxOpenTime.
func (s *Settings) doubled(d time.Duration) time.Duration {
	if d >= s.MaxOpenTime/2 {
		return s.MaxOpenTime
	}
	return 2 * d
}

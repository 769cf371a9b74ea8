// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"slices"
	"sync"
)

// memory is which key signed which certificate. That is a fact about bytes,
// whatever is trusted: the key is looked up among the authorities of the day, and
// the signature is verified again. A stranger can add nothing, because only what
// a known authority has signed gets in. An authority that signs many certificates
// displaces only its own.
type memory struct {
	mu   sync.RWMutex
	keys map[fingerprint]string   // raw public keys
	of   map[string][]fingerprint // by raw public key, oldest first
}

// fingerprint is the SHA-256 of a certificate.
type fingerprint [sha256.Size]byte

// perKey certificates of each authority are remembered, which is more than a
// cluster has API servers. maxKeys bounds the authorities: they come and go with
// the configuration. Together they bound the memory to about 30 MB.
const (
	perKey  = 16
	maxKeys = 16384
)

func newMemory() *memory {
	return &memory{keys: map[fingerprint]string{}, of: map[string][]fingerprint{}}
}

// recall returns the raw public key that signed c, or "".
func (m *memory) recall(c *x509.Certificate) string {
	sum := fingerprint(sha256.Sum256(c.Raw))
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.keys[sum]
}

// remember reports whether it had to forget something for it.
func (m *memory) remember(c *x509.Certificate, signer *authority) (displaced bool) {
	sum, key := fingerprint(sha256.Sum256(c.Raw)), string(signer.key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.keys[sum]; known {
		return false
	}
	if len(m.of) == maxKeys && m.of[key] == nil {
		clear(m.keys)
		clear(m.of)
	}
	if own := m.of[key]; len(own) == perKey {
		delete(m.keys, own[0])
		m.of[key], displaced = slices.Delete(own, 0, 1), true
	}
	m.keys[sum] = key
	m.of[key] = append(m.of[key], sum)
	return displaced
}

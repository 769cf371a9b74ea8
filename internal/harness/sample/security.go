// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// secured draw what pods have that the standards look at.
type secured struct{ Dice }

func (d secured) metadata() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: Pick(d.Dice, "web", "db")}
	if d.One(4) {
		m.Annotations = map[string]string{
			"container.apparmor.security.beta.kubernetes.io/c0": Pick(d.Dice, "unconfined", "runtime/default", "localhost/x", "other", ""),
		}
	}
	return m
}

// restricted is a pod that every level allows, mostly.
func (d secured) spec() corev1.PodSpec {
	spec := corev1.PodSpec{SecurityContext: d.podContext()}
	for i := range d.IntN(3) + 1 {
		spec.Containers = append(spec.Containers, d.container(fmt.Sprint("c", i)))
	}
	for i := range d.IntN(2) {
		spec.InitContainers = append(spec.InitContainers, d.container(fmt.Sprint("i", i)))
	}
	if d.One(5) {
		c := d.container("e")
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
	}
	for i := range d.IntN(3) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: d.volume()})
	}
	spec.HostNetwork, spec.HostPID, spec.HostIPC = d.One(12), d.One(12), d.One(12)
	if d.One(6) {
		spec.HostUsers = new(d.One(2))
	}
	if d.One(5) {
		spec.RuntimeClassName = new(Pick(d.Dice, "", "gvisor", "kata"))
	}
	if d.One(6) {
		spec.OS = &corev1.PodOS{Name: Pick(d.Dice, corev1.Linux, corev1.Windows)}
	}
	return spec
}

func (d secured) seccomp() *corev1.SeccompProfile {
	if d.One(3) {
		return nil
	}
	return &corev1.SeccompProfile{Type: Pick(d.Dice, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined)}
}

func (d secured) appArmor() *corev1.AppArmorProfile {
	if !d.One(6) {
		return nil
	}
	return &corev1.AppArmorProfile{Type: Pick(d.Dice, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeUnconfined)}
}

func (d secured) seLinux() *corev1.SELinuxOptions {
	if !d.One(6) {
		return nil
	}
	return &corev1.SELinuxOptions{Type: Pick(d.Dice, "", "container_t", "container_engine_t", "spc_t"), User: Pick(d.Dice, "", "", "u"), Role: Pick(d.Dice, "", "", "r")}
}

func (d secured) windows() *corev1.WindowsSecurityContextOptions {
	if !d.One(8) {
		return nil
	}
	return &corev1.WindowsSecurityContextOptions{HostProcess: Maybe(d.Dice, true, false)}
}

func (d secured) podContext() *corev1.PodSecurityContext {
	if d.One(6) {
		return nil
	}
	c := &corev1.PodSecurityContext{
		RunAsNonRoot: Maybe(d.Dice, true, true, false), RunAsUser: Maybe(d.Dice, int64(1000), 1000, 0), SeccompProfile: d.seccomp(),
		AppArmorProfile: d.appArmor(), SELinuxOptions: d.seLinux(), WindowsOptions: d.windows(),
	}
	if d.One(6) {
		c.Sysctls = []corev1.Sysctl{{Name: Pick(d.Dice, "kernel.shm_rmid_forced", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "kernel.msgmax"), Value: "1"}}
	}
	return c
}

func (d secured) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: Pick(d.Dice, "a", "b", "c")}
	if !d.One(5) {
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: Maybe(d.Dice, false, false, false, true), RunAsNonRoot: Maybe(d.Dice, true, true, false), RunAsUser: Maybe(d.Dice, int64(1000), 1000, 0),
			SeccompProfile: d.seccomp(), AppArmorProfile: d.appArmor(), SELinuxOptions: d.seLinux(), WindowsOptions: d.windows(),
		}
		if d.One(8) {
			c.SecurityContext.Privileged = new(d.One(2))
		}
		if d.One(8) {
			c.SecurityContext.ProcMount = new(Pick(d.Dice, corev1.DefaultProcMount, corev1.UnmaskedProcMount))
		}
		if !d.One(3) {
			c.SecurityContext.Capabilities = &corev1.Capabilities{
				Drop: Pick(d.Dice, []corev1.Capability{"ALL"}, []corev1.Capability{"ALL"}, []corev1.Capability{"NET_RAW"}, nil),
				Add:  Pick(d.Dice, nil, nil, []corev1.Capability{"NET_BIND_SERVICE"}, []corev1.Capability{"CHOWN", "SYS_ADMIN"}),
			}
		}
	}
	if d.One(8) {
		c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: Pick(d.Dice, int32(0), 80, 12345)}}
	}
	if d.One(8) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: Pick(d.Dice, "", "127.0.0.1", "example.com"), Port: intstr.FromInt32(80)}}}
	}
	if d.One(12) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: Pick(d.Dice, "", "example.com"), Port: intstr.FromInt32(80)}}}
	}
	return c
}

func (d secured) volume() corev1.VolumeSource {
	return Pick(d.Dice,
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}},
		corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}},
		corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		corev1.VolumeSource{},
	)
}

// levels are labels of a namespace, a few of which say nothing.
func (d secured) levels() map[string]string {
	labels := map[string]string{"team": "a"}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if !d.One(3) {
			labels["pod-security.kubernetes.io/"+mode] = Pick(d.Dice, "privileged", "baseline", "baseline", "restricted", "restricted", "restricted", "strict", "")
		}
		if d.One(2) {
			labels["pod-security.kubernetes.io/"+mode+"-version"] = Pick(d.Dice, "latest", "v1.0", "v1.7", "v1.19", "v1.25", "v1.30", "v1.33", "v1.34", "v1.37", "v1.40", "v2.0", "1.30", "")
		}
	}
	return labels
}

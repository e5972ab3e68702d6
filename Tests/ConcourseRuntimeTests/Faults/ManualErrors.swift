import Glibc

@testable import ConcourseRuntime

extension SystemCall {
  /// Every errno that the manual lists for the functions behind this name (man-pages 6.03; liburing 2.3 for rings).
  /// EWOULDBLOCK is EAGAIN here.
  var manualErrors: Set<Int32> {
    switch self {
    case .epollCreate:  // epoll_create(2)
      [EINVAL, EMFILE, ENFILE, ENOMEM]
    case .epollControl:  // epoll_ctl(2)
      [EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM]
    case .epollWait:  // epoll_wait(2)
      [EBADF, EFAULT, EINTR, EINVAL]
    case .poll:  // poll(2)
      [EFAULT, EINTR, EINVAL, ENOMEM]
    case .timerCreate:  // timerfd_create(2)
      [EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, EPERM]
    case .timerSet:  // timerfd_settime(2)
      [EBADF, EFAULT, EINVAL, ECANCELED]
    case .eventCreate:  // eventfd(2)
      [EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM]
    case .inotifyCreate:  // inotify_init(2)
      [EINVAL, EMFILE, ENFILE, ENOMEM]
    case .inotifyAdd:  // inotify_add_watch(2)
      [
        EACCES, EBADF, EEXIST, EFAULT, EINVAL, ENAMETOOLONG, ENOENT, ENOMEM, ENOSPC, ENOTDIR,
      ]
    case .inotifyRemove:  // inotify_rm_watch(2)
      [EBADF, EINVAL]
    case .processOpen:  // pidfd_open(2)
      [EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, ESRCH]
    case .processWait:  // waitid(2), kill(2)
      [EAGAIN, ECHILD, EINTR, EINVAL, ESRCH, EPERM]
    case .signalAction:  // sigaction(2)
      [EFAULT, EINVAL]
    case .open:  // open(2)
      [
        EACCES, EBADF, EBUSY, EDQUOT, EEXIST, EFAULT, EFBIG, EOVERFLOW, EINTR, EINVAL, EISDIR, ELOOP, EMFILE,
        ENAMETOOLONG, ENFILE, ENODEV, ENXIO, ENOENT, ENOMEM, ENOSPC, ENOTDIR, EOPNOTSUPP, EPERM, EROFS,
        ETXTBSY, EAGAIN,
      ]
    case .close:  // close(2), less EINTR, which `System.close` itself takes for success
      [EBADF, EIO, ENOSPC, EDQUOT]
    case .read:  // read(2), pread(2) with lseek(2), preadv2(2), recv(2)
      [
        EAGAIN, EBADF, EFAULT, EINTR, EINVAL, EIO, EISDIR, ENXIO, EOVERFLOW, ESPIPE, EOPNOTSUPP, ECONNREFUSED,
        ENOMEM, ENOTCONN, ENOTSOCK,
      ]
    case .write:  // write(2), pwrite(2) with lseek(2), writev(2), send(2)
      [
        EAGAIN, EBADF, EDESTADDRREQ, EDQUOT, EFAULT, EFBIG, EINTR, EINVAL, EIO, ENOSPC, EPERM, EPIPE, ENXIO,
        EOVERFLOW, ESPIPE, EOPNOTSUPP, EACCES, EALREADY, ECONNRESET, EISCONN, EMSGSIZE, ENOBUFS, ENOMEM,
        ENOTCONN,
        ENOTSOCK,
      ]
    case .seek:  // lseek(2)
      [EBADF, EINVAL, ENXIO, EOVERFLOW, ESPIPE]
    case .status:  // stat(2), readlink(2)
      [
        EACCES, EBADF, EFAULT, EINVAL, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EOVERFLOW,
      ]
    case .control:  // fcntl(2)
      [
        EACCES, EAGAIN, EBADF, EBUSY, EDEADLK, EFAULT, EINTR, EINVAL, EMFILE, ENOLCK, ENOTDIR, EPERM,
      ]
    case .deviceControl:  // ioctl(2)
      [EBADF, EFAULT, EINVAL, ENOTTY]
    case .ringSetup:  // io_uring_setup(2)
      [EFAULT, EINVAL, EMFILE, ENFILE, ENOMEM, EPERM]
    case .ringEnter:  // io_uring_enter(2)
      [
        EACCES, EAGAIN, EBADF, EBADFD, EBADR, EBUSY, EFAULT, EINTR, EINVAL, ENXIO, EOPNOTSUPP,
      ]
    case .ringRegister:  // io_uring_register(2)
      [
        EACCES, EBADF, EBADFD, EBUSY, EFAULT, EINVAL, EMFILE, ENOMEM, ENXIO, EOPNOTSUPP,
      ]
    case .map:  // mmap(2)
      [
        EACCES, EAGAIN, EBADF, EEXIST, EINVAL, ENFILE, ENODEV, ENOMEM, EOVERFLOW, EPERM, ETXTBSY,
      ]
    case .socket:  // socket(2)
      [EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, EPROTONOSUPPORT, ENOMEM]
    case .bind:  // bind(2)
      [
        EACCES, EADDRINUSE, EBADF, EINVAL, ENOTSOCK, EADDRNOTAVAIL, EFAULT, ELOOP, ENAMETOOLONG, ENOENT,
        ENOMEM, ENOTDIR, EROFS,
      ]
    case .thread:  // pthread_create(3)
      [EAGAIN, EINVAL, EPERM]
    }
  }
}

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands for nvidia-cuda-mps-control: the same words and folders, and no GPU.

    mps_control.py -f     the control daemon, in the foreground
    mps_control.py        orders from standard input to the one in CUDA_MPS_PIPE_DIRECTORY
"""
import os
import pathlib
import socket
import sys

PIPES = pathlib.Path(os.environ['CUDA_MPS_PIPE_DIRECTORY'])
LOGS = pathlib.Path(os.environ['CUDA_MPS_LOG_DIRECTORY'])


def serve():
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(PIPES / 'control'))
    s.listen()
    while True:
        c, _ = s.accept()
        with c:
            line = c.makefile().readline().strip()
            with open(LOGS / 'control.log', 'a', encoding='utf-8') as log:
                log.write(f'{line} (as {os.getuid()}, {os.environ["CUDA_VISIBLE_DEVICES"]})\n')
            if line == 'get_server_list':
                c.sendall(f'{os.getpid()}\n'.encode())
            if line == 'quit':
                return


def order():
    for line in sys.stdin:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(str(PIPES / 'control'))
        except OSError:
            sys.exit(f'Cannot find MPS control daemon process: {PIPES}')
        with s:
            s.sendall(line.encode())
            sys.stdout.write(s.makefile().read())


if sys.argv[1:] == ['-f']:
    serve()
else:
    order()
